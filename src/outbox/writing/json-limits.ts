/**
 * What PostgreSQL does not keep though it is JSON: nesting beyond its stack, and in `jsonb` U+0000, halves of characters and
 * numbers that `numeric` cannot hold. One pass over a text that is known to be JSON.
 */

/** PostgreSQL reads JSON recursively; it ended between 10,000 and 20,000 levels with its usual stack. */
const MOST_LEVELS = 5_000
/** Digits before and behind the point that `numeric` has at most. */
const MOST_WHOLE_DIGITS = 131_072
const MOST_FRACTION_DIGITS = 16_383

const QUOTE = 0x22
const BACKSLASH = 0x5c
const isOpening = (code: number): boolean => code === 0x5b || code === 0x7b
const isClosing = (code: number): boolean => code === 0x5d || code === 0x7d
/** What a number begins with; its other characters follow without a gap. */
const isNumeric = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) || code === 0x2d || code === 0x2b || code === 0x2e || (code | 0x20) === 0x65

/** Why a column of this type cannot keep the JSON; undefined when it can. */
export function jsonProblem(text: string, type: 'json' | 'jsonb'): string | undefined {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const end = endOfString(text, at)
      const problem = type === 'jsonb' ? stringProblem(text, at, end) : undefined
      if (problem !== undefined) return problem
      at = end
    } else if (isOpening(code)) {
      if (++depth > MOST_LEVELS) return `is nested deeper than ${MOST_LEVELS} levels`
    } else if (isClosing(code)) depth--
    else if (type === 'jsonb' && code >= 0x30 && code <= 0x39) {
      const end = endOfNumber(text, at)
      if (!fitsNumeric(text.slice(at, end))) return 'holds a number beyond what a column of jsonb can keep'
      at = end - 1
    }
  }
  return undefined
}

/** Where the closing quote of the string that begins at `at` stands. */
function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

const ESCAPE = /\\(?:u([\da-fA-F]{4})|.)/g

function stringProblem(text: string, from: number, to: number): string | undefined {
  if (to - from < 7) return undefined
  const string = text.slice(from + 1, to)
  if (!string.includes('\\u')) return undefined
  const decoded = string.replace(ESCAPE, (_, hex?: string) =>
    hex === undefined ? ' ' : String.fromCharCode(Number.parseInt(hex, 16)),
  )
  if (decoded.includes('\0')) return 'holds U+0000, which a column of jsonb cannot keep'
  if (!decoded.isWellFormed())
    return 'holds half a character (a lone surrogate), which a column of jsonb cannot keep'
  return undefined
}

function endOfNumber(text: string, at: number): number {
  let end = at
  while (end < text.length && isNumeric(text.charCodeAt(end))) end++
  return end
}

function fitsNumeric(number: string): boolean {
  // Most are short, and far from any limit.
  if (number.length < 5) return true
  const [mantissa = '', exponent = '0'] = number.split(/[eE]/)
  const [whole = '', fraction = ''] = mantissa.split('.')
  const shift = Number(exponent)
  return whole.length + shift <= MOST_WHOLE_DIGITS && fraction.length - shift <= MOST_FRACTION_DIGITS
}
