/** The members of a JSON object as they were written: to keep a value, not to understand it. */

import { skipSpace, stringEnd } from './json-scan.ts'

/**
 * The text of each member's value, by name; of several with the same name the last, as JSON.parse takes it. `text` is
 * an object that JSON.parse accepts. One pass, without recursion.
 */
export function memberTexts(text: string): ReadonlyMap<string, string> {
  const members = new Map<string, string>()
  let at = text.indexOf('{') + 1
  for (;;) {
    at = skipSpace(text, at)
    if (text[at] === ',') at = skipSpace(text, at + 1)
    if (text[at] !== '"') return members
    const nameEnd = stringEnd(text, at)
    const name: unknown = JSON.parse(text.slice(at, nameEnd))
    const start = skipSpace(text, text.indexOf(':', nameEnd) + 1)
    at = valueEnd(text, start)
    members.set(String(name), text.slice(start, at).trimEnd())
  }
}

/** Behind the value that begins at `start`: at the comma or brace that ends its member. */
function valueEnd(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length; ) {
    const character = text[at]
    if (character === '"') {
      at = stringEnd(text, at)
      continue
    }
    if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') depth--
    if (depth < 0 || (depth === 0 && character === ',')) return at
    at++
  }
  return text.length
}
