/** Values as JSON in the layout of hexkit: `", "` and `": "` between things, ASCII only, integers of any size, bare `NaN`. */
import { escapedUnit } from './escape.ts'

/** Python escapes DEL too; JSON.stringify has escaped all other controls. */
const TO_ESCAPE = /[\u007f-\uffff]/g

interface Open {
  readonly container: object
  /** What is written is `values[at]`, under `names[at]` when it is an object. */
  readonly values: readonly unknown[]
  readonly names: readonly string[] | null
  at: number
}

/**
 * The bytes of a value: null, booleans, numbers, bigint, strings, and arrays and plain objects of them. Members that are undefined are
 * left out. Anything else, a cycle too, is a TypeError that says where it stands. Without recursion.
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
    if (innermost === undefined) return Buffer.from(parts.join(''), 'latin1')
    if (innermost.at > 0) parts.push(', ')
    if (innermost.names !== null) parts.push(quoted(innermost.names[innermost.at] ?? ''), ': ')
    current = innermost.values[innermost.at]
  }
}

/** What opens with an array or an object; null when the value is neither. */
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

/** Whether nothing but its members makes the object what it is, also when it was made in another context. */
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

const quoted = (text: string): string => JSON.stringify(text).replace(TO_ESCAPE, escapedUnit)

const refused = (what: string, open: readonly Open[]): TypeError =>
  new TypeError(`JSON has no way to write ${what}, at ${pathOf(open)}`)

/** Where in the value it is, as code would say it; long paths lose their beginning. */
function pathOf(open: readonly Open[]): string {
  const steps = open
    .slice(-20)
    .map(({ names, at }) =>
      names === null ? `[${at}]` : `[${JSON.stringify(names[at] ?? '').slice(0, 80)}]`,
    )
  return `payload${open.length > 20 ? '…' : ''}${steps.join('')}`
}
