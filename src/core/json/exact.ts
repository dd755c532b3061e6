/** JSON values with exact numbers: those that JavaScript cannot hold stay as written, as `JSON.rawJSON`, which `JSON.stringify` writes back. */
declare const rawNumberBrand: unique symbol

export interface RawNumber {
  readonly rawJSON: string
  readonly [rawNumberBrand]: true
}

interface JsonOfTheEngine {
  rawJSON(text: string): RawNumber
  isRawJSON(value: unknown): value is RawNumber
  parse(
    text: string,
    revive: (name: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown
}

// Every supported Node has these; the types of our language version do not.
const engine = JSON as unknown as JsonOfTheEngine

export const rawNumber = (text: string): RawNumber => engine.rawJSON(text)

export const isRawNumber = (value: unknown): value is RawNumber => engine.isRawJSON(value)

/** Texts without such digits parse five times as fast. */
const MAY_BE_INEXACT = /[\d.]{16}|\d[eE]/

/** Throws where JSON.parse does. */
export function parseExactly(text: string): unknown {
  if (!MAY_BE_INEXACT.test(text)) return JSON.parse(text)
  return engine.parse(text, (_name, value, { source }) =>
    typeof value === 'number' && source !== undefined && !isExact(value, source) ? rawNumber(source) : value,
  )
}

const isExact = (value: number, source: string): boolean =>
  Number.isFinite(value) && !isBeyondWhole(value) && sameNumber(String(value), source)

/** JavaScript may have rounded it. */
export const isBeyondWhole = (value: number): boolean =>
  Number.isInteger(value) && !Number.isSafeInteger(value)

/** null for anything but an object. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isRawNumber(value)) return null
  // A JSON object has no symbols for names.
  return value as Readonly<Record<string, unknown>>
}

export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (isRawNumber(value)) return 'a number'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** Ignores the order of members and the spelling of numbers. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (isRawNumber(a) && isRawNumber(b)) return sameNumber(a.rawJSON, b.rawJSON)
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b)) return false
    return a.length === b.length && a.every((element, index) => sameJson(element, b[index]))
  }
  const left = membersOf(a)
  const right = membersOf(b)
  if (left === null || right === null) return false
  const names = Object.keys(left)
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && sameJson(left[name], right[name]))
  )
}

/** Members sorted by name, without undefined ones and white space. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  const members = membersOf(value)
  if (members === null) return JSON.stringify(value)
  const names = Object.keys(members)
    .filter((name) => members[name] !== undefined)
    .sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalJson(members[name])}`).join()}}`
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
/** Longer exponents are compared as written. */
const MOST_EXPONENT_CHARACTERS = 20

/** However they are written, with any number of digits. */
export const sameNumber = (a: string, b: string): boolean => a === b || plainForm(a) === plainForm(b)

/** One text for all spellings of a number. */
function plainForm(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = NUMBER.exec(text) ?? []
  const digits = whole + fraction
  // Loops: a regular expression for trailing zeros takes quadratic time.
  let start = 0
  while (digits[start] === '0') start++
  if (start === digits.length) return '0'
  let end = digits.length
  while (digits[end - 1] === '0') end--
  const shown = `${sign}${digits.slice(start, end)}e`
  if (exponent.length > MOST_EXPONENT_CHARACTERS) return `${shown}${text}`
  return `${shown}${BigInt(exponent) + BigInt(digits.length - end - fraction.length)}`
}
