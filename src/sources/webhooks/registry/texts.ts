/** Ids, names, tokens and addresses: what clients may choose. */
import { hasControlCharacter } from '../../../core/content.ts'
import { Refused } from '../refusal.ts'

const MOST_CHARACTERS = 255

/** Not too long, no U+0000, no half characters. */
export const isStorable = (text: string): boolean =>
  // A character has one or two units: only what lies between has to be counted.
  text.length <= 2 * MOST_CHARACTERS &&
  (text.length <= MOST_CHARACTERS || [...text].length <= MOST_CHARACTERS) &&
  !text.includes('\0') &&
  text.isWellFormed()

export function checkTexts(...texts: readonly string[]): void {
  if (!texts.every(isStorable)) throw new Refused('text_invalid')
}

export function checkNames(...names: readonly string[]): void {
  if (names.some(hasControlCharacter)) throw new Refused('name_invalid')
}

/** Null for the empty text too. */
export const given = (text: string | null | undefined): string | null =>
  text === null || text === undefined || text === '' ? null : text

/** Far beyond real addresses. */
const MOST_ADDRESS_CHARACTERS = 8_192

/** A URL parser takes much more for absolute, such as `http:host`, or trims it. */
const ADDRESS_FORM = /^https?:\/\/[^/?#\\\s]/i

/** A URL parser would drop these without a word. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const DROPPED = /[\x00-\x1f\x7f]|\s$/

/** Credentials are allowed. */
export function parseCallbackUrl(text: string): URL | null {
  if (text.length > MOST_ADDRESS_CHARACTERS || !ADDRESS_FORM.test(text) || DROPPED.test(text)) return null
  return text.isWellFormed() ? URL.parse(text) : null
}

export const withoutCredentials = (callbackUrl: string): string =>
  callbackUrl.replace(/^(https?:\/\/)[^/?#\\]*@/i, '$1')

/** As it is where it cannot be decoded. */
export function percentDecoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
