/**
 * What PostgreSQL does not keep though it is JSON: nesting beyond its stack, and in `jsonb` U+0000, halves of characters and
 * numbers that `numeric` cannot hold. One pass over a text that is known to be JSON.
 */
import { isClosing, isOpening, isQuote, skipSpace, tokenEnd } from '../../core/json/tokens.ts'

/** PostgreSQL reads JSON recursively; it ended between 10,000 and 20,000 levels with its usual stack. */
const MOST_LEVELS = 5_000
/** Digits before and behind the point that `numeric` has at most. */
const MOST_WHOLE_DIGITS = 131_072
const MOST_FRACTION_DIGITS = 16_383

/** Why a column of this type cannot keep the JSON; undefined when it can. */
export function columnProblem(text: string, type: 'json' | 'jsonb'): string | undefined {
  let depth = 0
  for (let at = skipSpace(text, 0), end = 0; at < text.length; at = skipSpace(text, end)) {
    end = tokenEnd(text, at)
    const code = text.charCodeAt(at)
    if (isOpening(code)) {
      if (++depth > MOST_LEVELS) return `is nested deeper than ${MOST_LEVELS} levels`
    } else if (isClosing(code)) depth--
    else if (type === 'jsonb') {
      // Most are short, and far from any limit.
      const isShort = end - at < (isQuote(code) ? SHORTEST_ESCAPE : SHORTEST_EXPONENT)
      const problem = isShort ? undefined : valueProblem(text.slice(at, end))
      if (problem !== undefined) return problem
    }
  }
  return undefined
}

/** `"\u0000"` and `1e999`: what is shorter has no problem. */
const SHORTEST_ESCAPE = 8
const SHORTEST_EXPONENT = 5

const valueProblem = (written: string): string | undefined =>
  written.startsWith('"') ? stringProblem(written) : numberProblem(written)

const ESCAPE = /\\(?:u([\da-fA-F]{4})|.)/g

function stringProblem(string: string): string | undefined {
  if (!string.includes('\\u')) return undefined
  const decoded = string.replace(ESCAPE, (_, hex?: string) =>
    hex === undefined ? ' ' : String.fromCharCode(Number.parseInt(hex, 16)),
  )
  if (decoded.includes('\0')) return 'holds U+0000, which a column of jsonb cannot keep'
  if (!decoded.isWellFormed())
    return 'holds half a character (a lone surrogate), which a column of jsonb cannot keep'
  return undefined
}

/** Words have no digits. */
function numberProblem(number: string): string | undefined {
  const [mantissa = '', exponent = '0'] = number.replace(/^-/, '').split(/[eE]/)
  const [whole = '', fraction = ''] = mantissa.split('.')
  const shift = Number(exponent)
  const isKept = whole.length + shift <= MOST_WHOLE_DIGITS && fraction.length - shift <= MOST_FRACTION_DIGITS
  return isKept ? undefined : 'holds a number beyond what a column of jsonb can keep'
}
