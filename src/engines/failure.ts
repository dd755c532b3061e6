/** Failures of handlers: what a handler may throw, what the runtime adds, and how anything thrown is described. */
import { inspect } from 'node:util'

/** Thrown by a handler that cannot succeed, however often it is tried: the message becomes a letter at once. */
export class PermanentError extends Error {
  override readonly name: string = 'PermanentError'
}

/** A handler did not return in time. It is left to itself, and what it still returns is ignored. */
export class HandlerTimedOut extends Error {
  override readonly name = 'HandlerTimedOut'
}

/** The message is no longer this worker's: its lease ended and somebody else may have it. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/** The engine was stopped while the handler ran. */
export class EngineStopped extends Error {
  override readonly name = 'EngineStopped'
}

/** What is kept of an error. */
export interface ErrorDescription {
  readonly errorClass: string
  readonly errorMessage: string
  readonly errorStack: string | null
}

const UNREADABLE: ErrorDescription = {
  errorClass: 'UnreadableError',
  errorMessage: 'the handler threw something that cannot be read',
  errorStack: null,
}

/** Describes whatever was thrown; also what is no Error, and what throws when it is looked at. */
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
