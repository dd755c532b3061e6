/** JSON made readable without reading its values: numbers, the order of members and duplicates stay as they were written. */

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g

/** The text with a line per member and element; null when it is no JSON. */
export function indentJson(text: string): string | null {
  try {
    JSON.parse(text)
  } catch {
    return null
  }
  const parts: string[] = []
  let depth = 0
  let before = ''
  const newLine = () => parts.push('\n', '  '.repeat(depth))
  for (const [token] of text.matchAll(TOKEN)) {
    const closes = token === '}' || token === ']'
    if (closes) depth -= 1
    const isEmpty = closes && (before === '{' || before === '[')
    if (before === ',' || (closes && !isEmpty) || (!closes && (before === '{' || before === '['))) newLine()
    parts.push(token === ':' ? ': ' : token)
    if (token === '{' || token === '[') depth += 1
    before = token
  }
  return parts.join('')
}
