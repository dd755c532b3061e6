/** Steps through the text of JSON, for those who keep it as it was written. The text is JSON: nothing is checked here. */

/** At the first character from `from` on that is no white space. */
export function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && ' \t\n\r'.includes(text.charAt(at))) at++
  return at
}

/** Behind the closing quote of the string that begins at `start`. */
export function stringEnd(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

/** Behind a number, `true`, `false` or `null`. */
export function wordEnd(text: string, start: number): number {
  let at = start
  while (at < text.length && !' \t\n\r,:]}'.includes(text.charAt(at))) at++
  return at
}
