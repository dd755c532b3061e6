/** JSON as a value, for code that looks into events: exact integers of any size, and the numbers that only Python calls JSON. */
import { storedText } from '../../core/content.ts'
import { scanJson } from './json-scan.ts'
import { stringEnd } from './shown-json.ts'

/** Numbers up to so many digits are exact as a JavaScript number. */
const EXACT_DIGITS = 15

const NUMBER = /-?(?:[\d.eE+-]+|Infinity)|NaN/y
const INTEGER = /^-?\d+$/

interface Open {
  readonly container: unknown[] | Record<string, unknown>
  /** The name of the member whose value is being read. */
  name: string
}

/**
 * The value of JSON bytes. Integers beyond ±(2^53−1) are bigint, `NaN` and the infinities are numbers; of members with the same name
 * the last one counts, and `__proto__` is a name like any other. Without recursion. Throws a SyntaxError for what is not JSON.
 */
export function readJson(bytes: Uint8Array): unknown {
  const scan = scanJson(bytes)
  if (!scan.ok) throw new SyntaxError(scan.why === 'not_json' ? 'not JSON' : 'not JSON: no UTF-8')
  const text = storedText(bytes)
  return scan.longestInteger <= EXACT_DIGITS && !scan.nonFinite ? JSON.parse(text) : readExactly(text)
}

/** Reads what `scanJson` accepts: nothing is checked again. */
function readExactly(text: string): unknown {
  const open: Open[] = []
  for (let at = 0; ; ) {
    const character = text[at]
    let value: unknown
    switch (character) {
      case ' ':
      case '\t':
      case '\n':
      case '\r':
      case ',':
        at++
        continue
      case '{':
      case '[':
        open.push({ container: character === '{' ? {} : [], name: '' })
        at++
        continue
      case '}':
      case ']':
        value = open.pop()?.container
        at++
        break
      case '"': {
        const end = stringEnd(text, at)
        value = JSON.parse(text.slice(at, end))
        at = end
        const innermost = open.at(-1)
        if (innermost === undefined || Array.isArray(innermost.container)) break
        const colon = skipSpace(text, at)
        if (text[colon] !== ':') break
        innermost.name = String(value)
        at = colon + 1
        continue
      }
      case 't':
        value = true
        at += 4
        break
      case 'f':
        value = false
        at += 5
        break
      case 'n':
        value = null
        at += 4
        break
      default: {
        NUMBER.lastIndex = at
        const token = NUMBER.exec(text)?.[0] ?? ''
        value = numberOf(token)
        at += token.length
      }
    }
    const around = open.at(-1)
    if (around === undefined) return value
    if (Array.isArray(around.container)) around.container.push(value)
    else setMember(around.container, around.name, value)
  }
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && ' \t\n\r'.includes(text.charAt(at))) at++
  return at
}

function numberOf(token: string): number | bigint {
  const number = Number(token)
  return Number.isSafeInteger(number) || !INTEGER.test(token) ? number : BigInt(token)
}

/** An assignment to `__proto__` would change what the object is. */
function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}
