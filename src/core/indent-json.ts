/** JSON made readable without reading its values: numbers, the order of members and duplicates stay as they were written. */
import { skipSpace, stringEnd, wordEnd } from './json-scan.ts'

/** The text with a line for each member and element; null when it is no JSON. Only white space differs. */
export function indentJson(text: string): string | null {
  try {
    // Only to know that it is JSON: what is read has lost digits.
    JSON.parse(text)
  } catch {
    return null
  }
  const parts: string[] = []
  let depth = 0
  const newLine = () => parts.push('\n', '  '.repeat(depth))
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const character = text.charAt(at)
    if (character === '{' || character === '[') {
      const inside = skipSpace(text, at + 1)
      const close = text.charAt(inside)
      if (close === '}' || close === ']') {
        parts.push(character, close)
        at = inside + 1
        continue
      }
      depth++
      parts.push(character)
      newLine()
      at++
    } else if (character === '}' || character === ']') {
      depth--
      newLine()
      parts.push(character)
      at++
    } else if (character === ',') {
      parts.push(',')
      newLine()
      at++
    } else if (character === ':') {
      parts.push(': ')
      at++
    } else {
      const end = character === '"' ? stringEnd(text, at) : wordEnd(text, at)
      parts.push(text.slice(at, end))
      at = end
    }
  }
  return parts.join('')
}
