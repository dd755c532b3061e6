/** The part of a logger that modules use; pino's loggers fit. */
export interface Log {
  debug(details: object, message: string): void
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

const ignore = (): void => {}

export const silentLog: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore }
