/** What a handler threw, as a retry tells it to the server: short enough that a full batch stays within the limit of a body. */
import type { RetryItem } from './types.ts'

/** Items of one call that may each say what failed: 20 of them at 12,800 bytes are the 256,000 of a body. */
export const LARGEST_FAILED_BATCH = 20

/** In characters, of which each takes at most six bytes in JSON: together less than 12,800. */
const MOST = { errorClass: 100, errorMessage: 500, errorStack: 1_400 }

export type GivenError = Pick<RetryItem, 'errorClass' | 'errorMessage' | 'errorStack'>

/** Describes whatever was thrown; nothing of what throws when it is looked at. */
export function givenError(thrown: unknown): GivenError {
  try {
    return described(thrown)
  } catch {
    return {}
  }
}

function described(thrown: unknown): GivenError {
  if (!(thrown instanceof Error)) return { errorMessage: cut(String(thrown), MOST.errorMessage) }
  const { name, message, stack } = thrown
  return {
    errorClass: cut(String(name), MOST.errorClass),
    errorMessage: cut(String(message), MOST.errorMessage),
    ...(typeof stack === 'string' && { errorStack: cut(stack, MOST.errorStack) }),
  }
}

const cut = (text: string, most: number): string =>
  (text.length <= most ? text : `${text.slice(0, most - 1)}…`).toWellFormed()
