/** Steps through the text of JSON, for those who keep it as it was written. The text is JSON: nothing is checked here. */

/** At the first character from `from` on that is no white space. */
export function skipSpace(text: string, from: number): number {
  let at = from
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

/** Behind the end of a text there is no character: NaN, which is no white space. */
const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

const BACKSLASH = 0x5c

/** Behind the closing quote of the string that begins at `start`. Quotes are looked for, not every character: most are no quote. */
export function stringEnd(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let before = quote - 1
    while (text.charCodeAt(before) === BACKSLASH) before--
    // Backslashes in pairs stand for themselves; one more takes the quote into the string.
    if ((quote - before) % 2 === 1) return quote + 1
  }
  return text.length
}

/** Behind a number, `true`, `false` or `null`. */
export function wordEnd(text: string, start: number): number {
  let at = start
  while (at < text.length && !isEndOfWord(text.charCodeAt(at))) at++
  return at
}

const [COMMA, COLON, CLOSING_BRACKET, CLOSING_BRACE] = [0x2c, 0x3a, 0x5d, 0x7d]

const isEndOfWord = (code: number): boolean =>
  code === COMMA || code === CLOSING_BRACKET || code === CLOSING_BRACE || code === COLON || isSpace(code)
