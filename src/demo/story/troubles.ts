/** What goes wrong in the invented systems: errors with class, words and stack, as their programs would throw them. */
import type { ErrorDescription } from '../../core/thrown.ts'

/** What comes of an error that a program in JavaScript throws. */
export function thrown(
  errorClass: string,
  errorMessage: string,
  frames: readonly string[],
  at = '    at ',
): ErrorDescription {
  const stack = [`${errorClass}: ${errorMessage}`, ...frames.map((frame) => `${at}${frame}`)]
  return { errorClass, errorMessage, errorStack: stack.join('\n') }
}

/** The same in Python, whose stacks end with where it happened. */
export function raised(
  errorClass: string,
  errorMessage: string,
  frames: readonly string[],
): ErrorDescription {
  const stack = ['Traceback (most recent call last):', ...frames, `${errorClass}: ${errorMessage}`]
  return { errorClass, errorMessage, errorStack: stack.join('\n') }
}

/** An error to be thrown that is described as this. */
export function errorOf({ errorClass, errorMessage, errorStack }: ErrorDescription): Error {
  const error = new Error(errorMessage)
  error.name = errorClass
  error.stack = errorStack ?? ''
  return error
}
