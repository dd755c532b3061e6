/** JSON made readable without reading its values: numbers, the order of members and duplicates stay as they were written. */
import { isClosing, isJson, isOpening, skipSpace, tokenEnd } from './tokens.ts'

/** The text with a line for each member and element; null when it is no JSON. Only white space differs. */
export function indentJson(text: string): string | null {
  if (!isJson(text)) return null
  const parts: string[] = []
  let depth = 0
  let isEmpty = false
  const newLine = () => parts.push('\n', '  '.repeat(depth))
  for (let at = skipSpace(text, 0), end = 0; at < text.length; at = skipSpace(text, end)) {
    end = tokenEnd(text, at)
    const code = text.charCodeAt(at)
    if (isClosing(code)) {
      depth--
      if (!isEmpty) newLine()
    }
    const token = text.slice(at, end)
    parts.push(token === ':' ? ': ' : token)
    isEmpty = isOpening(code) && isClosing(text.charCodeAt(skipSpace(text, end)))
    if (isOpening(code)) depth++
    if (token === ',' || (isOpening(code) && !isEmpty)) newLine()
  }
  return parts.join('')
}
