/** Exit codes, the same for every command, and the errors that carry them. */
import { BartlebyError } from '../core/errors.ts'

export const EXIT = { ok: 0, failed: 1, usage: 2, nothing: 3 } as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

export const EXIT_HELP = `Exit codes:
  0  done
  1  failed
  2  wrong usage or configuration
  3  not found, or nothing there (a lease that got no items in time)`

/** Ends a command with one line on stderr and that code. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure'
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

/** Wrong usage. */
export const usage = (message: string): CommandFailure => new CommandFailure(EXIT.usage, message)

export const failed = (message: string): CommandFailure => new CommandFailure(EXIT.failed, message)

/** Not found. */
export const nothing = (message: string): CommandFailure => new CommandFailure(EXIT.nothing, message)

/** One line. Connection errors of several addresses have an empty message. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join(', ')
  return error.message || ('code' in error ? String(error.code) : error.name)
}

/** Found by the part that uses the option, such as an impossible header or secret. */
export const isWrongOption = (error: unknown): boolean =>
  error instanceof BartlebyError && error.code.endsWith('_option_invalid')

/** Wrong usage where an option was wrong, else that code. */
export function failureOf(error: unknown, otherwise: ExitCode): CommandFailure {
  if (error instanceof CommandFailure) return error
  return new CommandFailure(isWrongOption(error) ? EXIT.usage : otherwise, reasonOf(error), { cause: error })
}
