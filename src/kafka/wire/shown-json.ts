/** JSON of records as responses show it. */
import { storedText } from '../../core/content.ts'

const NOT_FINITE = /-?Infinity|NaN/y

/**
 * The text of JSON bytes, ready to stand in a response: byte for byte, but with null for `NaN` and the infinities, which are not JSON.
 * `bytes` are what `scanJson` accepts. The result is for eyes only and must never be published.
 */
export function shownJson(bytes: Uint8Array): string {
  const text = storedText(bytes)
  if (!text.includes('NaN') && !text.includes('Infinity')) return text
  let shown = ''
  let copied = 0
  for (let at = 0; at < text.length; ) {
    const character = text[at]
    if (character === '"') {
      at = stringEnd(text, at)
      continue
    }
    if (character === 'N' || character === 'I' || character === '-') {
      NOT_FINITE.lastIndex = at
      if (NOT_FINITE.test(text)) {
        shown += `${text.slice(copied, at)}null`
        at = copied = NOT_FINITE.lastIndex
        continue
      }
    }
    at++
  }
  return shown + text.slice(copied)
}

/** Behind the closing quote of the string that begins at `start`. */
export function stringEnd(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}
