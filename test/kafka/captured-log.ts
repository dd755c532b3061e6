/** A log that keeps what it was told, to look for what must not be there. */
import { Writable } from 'node:stream'
import pino, { type Logger } from 'pino'

export interface CapturedLog {
  readonly log: Logger
  /** All lines so far. */
  text(): string
}

/** Takes everything, also what is written only to find bugs. */
export function captureLog(): CapturedLog {
  const chunks: string[] = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk))
      done()
    },
  })
  return { log: pino({ level: 'trace' }, sink), text: () => chunks.join('') }
}
