/**
 * What an answer of a receiver means.
 *
 *   2xx                            delivered
 *   302, 303, 307                  failed: by its meaning temporary, the receiver may be at its place the next time
 *   other 3xx                      failed for good: the address is wrong, and every try would be answered the same
 *   408, 425, 429, 5xx and beyond  failed; not before `Retry-After`, when it is given
 *   other 4xx                      failed for good
 *
 * Redirects are never followed: a POST would become a GET on the way, or its content go to a stranger.
 */
import type { Instant } from '../../core/clock.ts'
import { PermanentError } from '../../core/thrown.ts'
import {
  type Answer,
  excerptOf,
  HttpDeliveryFailed,
  phrase,
  redirection,
  target,
} from '../../outgoing/answer.ts'
import { RetryLater } from '../transport.ts'

const TRANSIENT: ReadonlySet<number> = new Set([302, 303, 307, 408, 425, 429])
const isTransient = (status: number): boolean => status >= 500 || TRANSIENT.has(status)

const MOST_CHARACTERS = 500

/** Why a message was not delivered, when the answer is not a success. `address` is the receiver as it may be shown. */
export function failureOf(answer: Answer, address: URL, now: Instant): Error {
  const { status } = answer
  const text = `${target(address)} answered ${phrase(status)}${redirection(answer, address)}${excerptOf(answer, MOST_CHARACTERS)}`
  if (!isTransient(status)) return new PermanentError(text)
  const retryAfterMs = retryAfterMsOf(answer.retryAfter, now)
  return retryAfterMs === null ? new HttpDeliveryFailed(text) : new RetryLater(text, retryAfterMs)
}

const HTTP_DATE = /^[A-Za-z]{3,9},? /

/** How long to wait, in whole milliseconds: given in seconds, or as a date. Null when it is neither. */
export function retryAfterMsOf(retryAfter: string | null, now: Instant): number | null {
  if (retryAfter === null) return null
  const text = retryAfter.trim()
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, Number.MAX_SAFE_INTEGER)
  if (!HTTP_DATE.test(text)) return null
  // One of the three forms of dates in HTTP names no zone; all of them are in GMT.
  const atMs = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  if (Number.isNaN(atMs)) return null
  return Math.max(0, Math.ceil(atMs - Number(now) / 1_000))
}
