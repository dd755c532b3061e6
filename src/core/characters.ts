/** Kinds of characters, as far as the masking of errors tells them apart: one bit each, to be joined and tested. */

export const SPACE = 1
export const QUOTE = 2
export const DELIMITER = 4
export const DIGIT = 8
export const UPPER = 16
export const LOWER = 32
export const SLASH = 64
export const AT = 128
export const COLON = 256
/** What ends a chunk: a run of characters that is looked at as a whole. */
export const END = SPACE | QUOTE | DELIMITER
export const ALPHANUMERIC = DIGIT | UPPER | LOWER

const KINDS = new Uint16Array(128)
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code)
  if (code <= 32 || code === 127) KINDS[code] = SPACE
  else if ('\'"`'.includes(character)) KINDS[code] = QUOTE
  else if ('()[]{}<>,;=|'.includes(character)) KINDS[code] = DELIMITER
  else if (character >= '0' && character <= '9') KINDS[code] = DIGIT
  else if (character >= 'A' && character <= 'Z') KINDS[code] = UPPER
  else if (character >= 'a' && character <= 'z') KINDS[code] = LOWER
  else if ('/\\'.includes(character)) KINDS[code] = SLASH
  else if (character === '@') KINDS[code] = AT
  else if (character === ':') KINDS[code] = COLON
}

/** Opening quotes and what closes them. */
export const CLOSERS: ReadonlyMap<number, number> = new Map(
  ['""', "''", '``', '“”', '‘’', '«»'].map((pair) => [pair.charCodeAt(0), pair.charCodeAt(1)]),
)
const WIDE_SPACE = /[\x80-\xa0\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff]/

/** The kind of a UTF-16 code unit; 0 for other punctuation. */
export function kindOf(code: number): number {
  if (code < 128) return KINDS[code] ?? 0
  if (CLOSERS.has(code)) return QUOTE
  // Letters of other scripts count as lower case; nothing here asks for more.
  return WIDE_SPACE.test(String.fromCharCode(code)) ? SPACE : LOWER
}
