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

/** Ends a command because it was not asked for what can be done. */
export const usage = (message: string): CommandFailure => new CommandFailure(EXIT.usage, message)

/** Ends a command because what it was asked for did not come about. */
export const failed = (message: string): CommandFailure => new CommandFailure(EXIT.failed, message)

/** Ends a command because what it was asked about is not there. */
export const nothing = (message: string): CommandFailure => new CommandFailure(EXIT.nothing, message)

/** One line that says what went wrong. Connection errors of several addresses come with an empty message. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join(', ')
  return error.message || ('code' in error ? String(error.code) : error.name)
}

/** What only those parts know that use it, such as a header, or a secret, that cannot be one. */
export const isWrongOption = (error: unknown): boolean =>
  error instanceof BartlebyError && error.code.endsWith('_option_invalid')

/** The failure that an error is: of wrong usage where an option was wrong, else with that code. */
export function failureOf(error: unknown, otherwise: ExitCode): CommandFailure {
  if (error instanceof CommandFailure) return error
  return new CommandFailure(isWrongOption(error) ? EXIT.usage : otherwise, reasonOf(error), { cause: error })
}
