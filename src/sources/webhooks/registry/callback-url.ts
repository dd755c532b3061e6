/** Where deliveries go: what counts as the address of a consumer. */

/** Far beyond real addresses. */
const MOST_CHARACTERS = 8_192

/** A URL parser takes much more for absolute, such as `http:host`, or trims it. */
const FORM = /^https?:\/\/[^/?#\\\s]/i

/** Characters of one address that a URL parser would drop without a word. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const DROPPED = /[\x00-\x1f\x7f]|\s$/

/** The URL of an absolute http or https address; null for everything else. Credentials in it are allowed. */
export function parseCallbackUrl(text: string): URL | null {
  if (text.length > MOST_CHARACTERS || !FORM.test(text) || DROPPED.test(text)) return null
  return text.isWellFormed() ? URL.parse(text) : null
}

/** The same address as it may be shown to everybody: everything else stays as it was given. */
export const withoutCredentials = (callbackUrl: string): string =>
  callbackUrl.replace(/^(https?:\/\/)[^/?#\\]*@/i, '$1')

/** A part of an address without percent-encoding; as it is where that is none. */
export function percentDecoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
