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
import { STATUS_CODES } from 'node:http'
import type { Instant } from '../../core/clock.ts'
import { PermanentError } from '../../core/thrown.ts'
import { RetryLater } from '../transport.ts'

/** An answer, as much of it as is of use. */
export interface Answer {
  readonly status: number
  readonly retryAfter: string | null
  readonly location: string | null
  /** The beginning of its body. */
  readonly excerpt: Uint8Array
}

/** Delivery over HTTP failed; the next try may succeed. */
export class HttpDeliveryFailed extends Error {
  override readonly name = 'HttpDeliveryFailed'
}

const TRANSIENT: ReadonlySet<number> = new Set([302, 303, 307, 408, 425, 429])
const isTransient = (status: number): boolean => status >= 500 || TRANSIENT.has(status)

export const isSuccess = (status: number): boolean => status >= 200 && status < 300

/** Why a message was not delivered, when the answer is not a success. `address` is the receiver as it may be shown. */
export function failureOf(answer: Answer, address: URL, now: Instant): Error {
  const { status } = answer
  const text = `${target(address)} answered ${phrase(status)}${redirection(answer, address)}${excerptOf(answer)}`
  if (!isTransient(status)) return new PermanentError(text)
  const retryAfterMs = retryAfterMsOf(answer.retryAfter, now)
  return retryAfterMs === null ? new HttpDeliveryFailed(text) : new RetryLater(text, retryAfterMs)
}

/** The request in a few words, without the query, which may hold secrets. */
export const target = (address: URL): string => `POST ${plainAddress(address)}`

const plainAddress = ({ origin, pathname }: URL): string => origin + pathname

const phrase = (status: number): string => {
  const words = STATUS_CODES[status]
  return words === undefined ? String(status) : `${status} ${words}`
}

function redirection({ status, location }: Answer, address: URL): string {
  if (status < 300 || status >= 400 || location === null) return ''
  const place = URL.parse(location, address)
  return place === null ? '' : `, to ${plainAddress(place)}; redirects are not followed`
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

const MOST_CHARACTERS = 500
/** Line ends, controls and what is invisible: an error is one line, and shows all that it has. */
const UNSEEN = /[\s\p{C}]+/gu

function excerptOf({ excerpt }: Answer): string {
  const text = asText(excerpt)
  if (text === null) return `: ${excerpt.length} bytes or more that are not text`
  const line = text.replace(UNSEEN, ' ').trim()
  if (line === '') return ''
  return line.length <= MOST_CHARACTERS ? `: ${line}` : `: ${line.slice(0, MOST_CHARACTERS).toWellFormed()}…`
}

/** Null when the bytes are not UTF-8. The last character may be cut. */
function asText(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
  } catch {
    return null
  }
}
