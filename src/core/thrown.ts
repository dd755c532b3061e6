/** Errors that users' code throws, and descriptions of anything thrown. */
import { inspect } from 'node:util'

/** Thrown by a handler or transport that can never succeed: a letter is made at once. */
export class PermanentError extends Error {
  override readonly name: string = 'PermanentError'
}

export interface ErrorDescription {
  readonly errorClass: string
  readonly errorMessage: string
  readonly errorStack: string | null
}

const UNREADABLE: ErrorDescription = {
  errorClass: 'UnreadableError',
  errorMessage: 'something was thrown that cannot be read',
  errorStack: null,
}

/** Also of what is no Error, and of what throws when looked at. */
export function describeError(thrown: unknown): ErrorDescription {
  try {
    return thrown instanceof Error ? describeErrorObject(thrown) : describeOther(thrown)
  } catch {
    return UNREADABLE
  }
}

function describeErrorObject(error: Error): ErrorDescription {
  const { name, message, stack } = error
  return {
    errorClass: textOr(name, error.constructor.name || 'Error'),
    errorMessage: textOr(message, 'no message'),
    errorStack: typeof stack === 'string' ? stack : null,
  }
}

function describeOther(thrown: unknown): ErrorDescription {
  const isObject = typeof thrown === 'object' && thrown !== null
  const errorClass = isObject
    ? textOr(thrown.constructor?.name, 'Object')
    : `Thrown ${thrown === null ? 'null' : typeof thrown}`
  const text = typeof thrown === 'string' ? thrown : inspect(thrown, { depth: 3, maxStringLength: 32_768 })
  return { errorClass, errorMessage: textOr(text, 'no message'), errorStack: null }
}

const textOr = (value: unknown, otherwise: string): string =>
  typeof value === 'string' && value !== '' ? value : otherwise
