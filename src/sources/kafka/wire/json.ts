/** JSON as hexkit, and Python below it, reads and writes it: ASCII, integers of any size, bare `NaN` and infinities. Without recursion. */
import { isAscii } from 'node:buffer'
import { storedText } from '../../../core/content.ts'
import { type JsonScan, scanJson } from '../../../core/json/scan.ts'
import { skipSpace, stringOf, tokenEnd } from '../../../core/json/tokens.ts'

/** Python's reader refuses more. */
const DEEPEST = 500
const LONGEST_INTEGER = 4300

export const isReadableForPython = (scan: JsonScan & { readonly ok: true }): boolean =>
  scan.depth <= DEEPEST && scan.longestInteger <= LONGEST_INTEGER

/** Exact as a JavaScript number. */
const EXACT_DIGITS = 15

/**
 * Integers beyond ±(2^53−1) are bigint, `NaN` and the infinities numbers; of equal names the last counts, and `__proto__` is a name like
 * any other. Throws a SyntaxError.
 */
export function readJson(bytes: Uint8Array): unknown {
  const scan = scanJson(bytes)
  if (!scan.ok) throw new SyntaxError(scan.why === 'not_json' ? 'not JSON' : 'not JSON: no UTF-8')
  const text = storedText(bytes)
  return scan.longestInteger <= EXACT_DIGITS && !scan.nonFinite ? JSON.parse(text) : readExactly(text)
}

/** `scanJson` has accepted it. JSON.parse's reviver would recurse, and refuse `NaN`. */
function readExactly(text: string): unknown {
  const open: { readonly container: unknown[] | Record<string, unknown>; name: string | null }[] = []
  let value: unknown
  for (let at = skipSpace(text, 0), end = 0; at < text.length; at = skipSpace(text, end)) {
    end = tokenEnd(text, at)
    const token = text.slice(at, end)
    if (token === ',' || token === ':') continue
    if (token === '{' || token === '[') {
      open.push({ container: token === '{' ? {} : [], name: null })
      continue
    }
    value = token === '}' || token === ']' ? open.pop()?.container : scalarOf(token)
    const around = open.at(-1)
    if (around === undefined) continue
    if (Array.isArray(around.container)) around.container.push(value)
    else if (around.name === null) around.name = String(value)
    else {
      setMember(around.container, around.name, value)
      around.name = null
    }
  }
  return value
}

/** An assignment to `__proto__` would change what the object is. */
function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}

function scalarOf(token: string): unknown {
  if (token.startsWith('"')) return stringOf(token)
  if (token === 'true' || token === 'false') return token === 'true'
  if (token === 'null') return null
  const number = Number(token)
  return Number.isSafeInteger(number) || !/^-?\d+$/.test(token) ? number : BigInt(token)
}

/** JSON bytes, accepted by `scanJson`, for a response: null for `NaN` and the infinities. For eyes only, never to be published. */
export function shownJson(bytes: Uint8Array): string {
  const text = storedText(bytes)
  if (!text.includes('NaN') && !text.includes('Infinity')) return text
  let shown = ''
  let copied = 0
  for (let at = skipSpace(text, 0), end = 0; at < text.length; at = skipSpace(text, end)) {
    end = tokenEnd(text, at)
    if (!/^(?:NaN|-?Infinity)$/.test(text.slice(at, end))) continue
    shown += `${text.slice(copied, at)}null`
    copied = end
  }
  return shown + text.slice(copied)
}

const ESCAPE_LENGTH = 6
const BACKSLASH = 0x5c
const LOWER_U = 0x75
const HEX = Buffer.from('0123456789abcdef')

/**
 * Every UTF-16 unit from U+0080 on as `\uXXXX`. Such characters stand in strings only, so the value stays the same. ASCII is given back as
 * it is.
 */
export function escapeNonAscii(bytes: Uint8Array): Uint8Array {
  if (isAscii(bytes)) return bytes
  const text = storedText(bytes)
  // Two passes over the units: replacing each by a function takes three times as long.
  let length = text.length
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= 0x80) length += ESCAPE_LENGTH - 1
  const escaped = Buffer.allocUnsafe(length)
  let end = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit < 0x80) escaped[end++] = unit
    else {
      escaped[end++] = BACKSLASH
      escaped[end++] = LOWER_U
      for (let shift = 12; shift >= 0; shift -= 4) escaped[end++] = HEX[(unit >> shift) & 15] ?? 0
    }
  }
  return escaped
}

interface Open {
  readonly container: object
  /** `values[at]` is being written, under `names[at]` in an object. */
  readonly values: readonly unknown[]
  readonly names: readonly string[] | null
  at: number
}

/**
 * A value in hexkit's layout, with `", "` and `": "`. Undefined members are left out. What JSON cannot hold, a cycle too, is a TypeError
 * that says where it stands.
 */
export function writeJson(value: unknown): Uint8Array {
  const parts: string[] = []
  const open: Open[] = []
  const around = new Set<object>()
  let current = value
  for (;;) {
    const opened = containerOf(current, open)
    if (opened === null) parts.push(scalar(current, open))
    else if (around.has(opened.container)) throw refused('a cycle', open)
    else {
      parts.push(opened.names === null ? '[' : '{')
      open.push(opened)
      around.add(opened.container)
    }
    let innermost = open.at(-1)
    while (innermost !== undefined && ++innermost.at >= innermost.values.length) {
      parts.push(innermost.names === null ? ']' : '}')
      around.delete(innermost.container)
      open.pop()
      innermost = open.at(-1)
    }
    if (innermost === undefined) return escapeNonAscii(Buffer.from(parts.join('')))
    if (innermost.at > 0) parts.push(', ')
    if (innermost.names !== null) parts.push(quoted(innermost.names[innermost.at] ?? ''), ': ')
    current = innermost.values[innermost.at]
  }
}

/** Null for a scalar. */
function containerOf(value: unknown, open: readonly Open[]): Open | null {
  if (typeof value !== 'object' || value === null) return null
  // A copy: holes of an array become undefined, and are refused as that.
  if (Array.isArray(value)) return { container: value, values: [...value], names: null, at: -1 }
  if (!isPlain(value)) throw refused(`a ${value.constructor?.name || 'strange object'}`, open)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return {
    container: value,
    values: members.map(([, member]) => member),
    names: members.map(([name]) => name),
    at: -1,
  }
}

/** Also when it was made in another context. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function scalar(value: unknown, open: readonly Open[]): string {
  switch (typeof value) {
    case 'string':
      return quoted(value)
    case 'number':
    case 'bigint':
    case 'boolean':
      return String(value)
    case 'object':
      return 'null'
    case 'undefined':
      throw refused('undefined', open)
    default:
      throw refused(`a ${typeof value}`, open)
  }
}

/** Python escapes DEL too; JSON.stringify has escaped all other controls. */
const quoted = (text: string): string => JSON.stringify(text).replaceAll('\u007f', '\\u007f')

const refused = (what: string, open: readonly Open[]): TypeError =>
  new TypeError(`JSON has no way to write ${what}, at ${pathOf(open)}`)

/** Long paths lose their beginning. */
function pathOf(open: readonly Open[]): string {
  const steps = open
    .slice(-20)
    .map(({ names, at }) =>
      names === null ? `[${at}]` : `[${JSON.stringify(names[at] ?? '').slice(0, 80)}]`,
    )
  return `payload${open.length > 20 ? '…' : ''}${steps.join('')}`
}
