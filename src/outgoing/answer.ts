/**
 * What receivers answer, and how errors speak of it: in one line, with what can be seen, and without the query of the address or
 * credentials in it, which may be secrets.
 */
import { STATUS_CODES } from 'node:http'

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

export const isSuccess = (status: number): boolean => status >= 200 && status < 300

/** The request in a few words. */
export const target = (address: URL): string => `POST ${plainAddress(address)}`

export const plainAddress = ({ origin, pathname }: URL): string => origin + pathname

/** What was answered, such as `404 Not Found`. */
export const phrase = (status: number): string => {
  const words = STATUS_CODES[status]
  return words === undefined ? String(status) : `${status} ${words}`
}

/** Where a redirect would lead, which is never followed: a POST would become a GET on the way, or its content go to a stranger. */
export function redirection({ status, location }: Answer, address: URL): string {
  if (status < 300 || status >= 400 || location === null) return ''
  const place = URL.parse(location, address)
  return place === null ? '' : `, to ${plainAddress(place)}; redirects are not followed`
}

/** Line ends, controls and what is invisible: an error is one line, and shows all that it has. */
const UNSEEN = /[\s\p{C}]+/gu

/** The beginning of the body, behind a colon; nothing when there is none. */
export function excerptOf({ excerpt }: Answer, mostCharacters: number): string {
  const text = asText(excerpt)
  if (text === null) return `: ${excerpt.length} bytes or more that are not text`
  const line = text.replace(UNSEEN, ' ').trim()
  if (line === '') return ''
  return line.length <= mostCharacters ? `: ${line}` : `: ${line.slice(0, mostCharacters).toWellFormed()}…`
}

/** Null when the bytes are not UTF-8. The last character may be cut. */
function asText(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
  } catch {
    return null
  }
}
