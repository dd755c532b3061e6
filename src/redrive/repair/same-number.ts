/** Numbers in JSON, compared by their digits: JavaScript's own keep 53 bits. */

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
/** Longer exponents are compared as they are written; nobody means a number with them. */
const MOST_EXPONENT_CHARACTERS = 20

/** Whether two numbers in JSON are the same, however they are written and however many digits they have. */
export const sameNumber = (a: string, b: string): boolean => a === b || plainForm(a) === plainForm(b)

/** One text for all ways to write a number. */
function plainForm(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = NUMBER.exec(text) ?? []
  const digits = whole + fraction
  // Loops, because a regular expression for zeros at the end takes quadratic time.
  let start = 0
  while (digits[start] === '0') start++
  if (start === digits.length) return '0'
  let end = digits.length
  while (digits[end - 1] === '0') end--
  const shown = `${sign}${digits.slice(start, end)}e`
  if (exponent.length > MOST_EXPONENT_CHARACTERS) return `${shown}${text}`
  return `${shown}${BigInt(exponent) + BigInt(digits.length - end - fraction.length)}`
}
