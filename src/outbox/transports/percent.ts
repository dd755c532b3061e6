/** Texts of any kind in places where only some characters may stand. */

const PLAIN = /^[\x21-\x24\x26-\x7e]*$/
const TOKEN = /^[A-Za-z0-9!#$&'*+\-.^_`|~]*$/

/** Leaves visible ASCII as it is, apart from `%`. `decodeURIComponent` gives back exactly what it was. */
export const percentEncoded = (text: string): string => (PLAIN.test(text) ? text : encoded(text, PLAIN))

/** The same where only letters, digits and a few signs may stand: names, and parameters without quotes. */
export const tokenEncoded = (text: string): string => (TOKEN.test(text) ? text : encoded(text, TOKEN))

/** Percent-encodes the UTF-8 bytes that do not fit `allowed`. */
export function encoded(text: string, allowed: RegExp): string {
  let result = ''
  for (const byte of Buffer.from(text, 'utf8')) {
    const character = String.fromCharCode(byte)
    const isPlain = byte < 0x80 && allowed.test(character)
    result += isPlain ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return result
}
