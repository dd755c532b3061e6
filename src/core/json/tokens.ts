/**
 * Tokens of text that is JSON already, unchecked, for all who keep, cut or show JSON as written. Python's `NaN` and infinities are words.
 *
 *   for (let at = skipSpace(text, 0), end = 0; at < text.length; at = skipSpace(text, end)) {
 *     end = tokenEnd(text, at)
 *     …
 *   }
 */

const QUOTE = 0x22
const COLON = 0x3a
const BACKSLASH = 0x5c

const ENDS_WORD = new Uint8Array(128)
for (const end of ' \n\r\t,:[]{}') ENDS_WORD[end.charCodeAt(0)] = 1

/** Nothing else in JSON is below; NaN, behind the end, is not either. */
const isSpace = (code: number): boolean => code <= 0x20

export const isQuote = (code: number): boolean => code === QUOTE

export const isOpening = (code: number): boolean => code === 0x7b || code === 0x5b

export const isClosing = (code: number): boolean => code === 0x7d || code === 0x5d

export function skipSpace(text: string, from: number): number {
  let at = from
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

/** Behind the string, number, word or mark at `start`. */
export function tokenEnd(text: string, start: number): number {
  const first = text.charCodeAt(start)
  if (first === QUOTE) return stringEnd(text, start)
  let at = start + 1
  if (ENDS_WORD[first] === 1) return at
  while (at < text.length && ENDS_WORD[text.charCodeAt(at)] === 0) at++
  return at
}

const STEPS = 16

/** Behind the closing quote. Searches by steps, then by leaps: names are short, payloads long. */
export function stringEnd(text: string, start: number): number {
  let at = start + 1
  for (const near = at + STEPS; at < near; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) return at + 1
    if (code === BACKSLASH) at++
  }
  for (let quote = text.indexOf('"', at); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let before = quote
    while (before > at && text.charCodeAt(before - 1) === BACKSLASH) before--
    // Backslashes in pairs stand for themselves; an odd one escapes the quote.
    if ((quote - before) % 2 === 0) return quote + 1
  }
  return text.length
}

export function nameAt(text: string, start: number) {
  const nameEnd = stringEnd(text, start)
  const valueStart = skipSpace(text, skipSpace(text, nameEnd) + 1)
  return { name: stringOf(text.slice(start, nameEnd)), nameEnd, valueStart }
}

/** Whether the string that ends at `end` is a name. */
export function isName(text: string, end: number): boolean {
  const code = text.charCodeAt(end)
  return code === COLON || (isSpace(code) && text.charCodeAt(skipSpace(text, end)) === COLON)
}

export const stringOf = (written: string): string =>
  written.includes('\\') ? String(JSON.parse(written)) : written.slice(1, -1)

/** The engine's message; null for valid JSON. */
export function jsonProblem(text: string): string | null {
  try {
    JSON.parse(text)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

export const isJson = (text: string): boolean => jsonProblem(text) === null

export function isNestedDeeper(text: string, levels: number): boolean {
  let depth = 0
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, tokenEnd(text, at))) {
    const code = text.charCodeAt(at)
    if (isOpening(code)) depth++
    else if (isClosing(code)) depth--
    if (depth > levels) return true
  }
  return false
}

/** One line per member and element; null for invalid JSON. Changes white space only. */
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
