/**
 * The query language for letters, in the console and on the command line:
 *
 *   engine:hmac status:pending queue:orders age:>2d attempts:>=3 "connection reset"
 *
 * A term is `key:value`; words without a key are searched for. Values with spaces stand in double quotes, with `\"` and `\\`. All terms must
 * hold. Pure and without Node, because browsers use it too.
 */
import { parseTimestamp } from './timestamp.ts'

/** Parameters of `GET /api/dlq`, as texts. */
export type LetterParameter =
  | 'engine'
  | 'status'
  | 'instanceId'
  | 'fromDate'
  | 'toDate'
  | 'source'
  | 'originalQueue'
  | 'signature'
  | 'correlationId'
  | 'q'
  | 'minAttempts'
  | 'outcome'

export type LetterParameters = { readonly [Name in LetterParameter]?: string }

export interface LetterQueryProblem {
  /** The term as written, and where it starts. */
  readonly given: string
  readonly start: number
  /** What is wrong and what to write instead, in one sentence. */
  readonly message: string
  /** Keys or values that could stand there; empty if too many. */
  readonly allowed: readonly string[]
}

interface ParsedLetterQuery {
  readonly filter: LetterParameters
  readonly problems: readonly LetterQueryProblem[]
}

interface LetterQueryKey {
  readonly key: string
  readonly means: string
  readonly example: string
  /** All values, where these are few. */
  readonly values: readonly string[]
}

const MIN_SEARCH = 3
const MAX_SEARCH = 200

type Reading =
  | { readonly parameter: LetterParameter; readonly text: string }
  | { readonly message: string; readonly allowed?: readonly string[] }

type Read = (value: string, nowMs: number) => Reading

const asIs =
  (parameter: LetterParameter): Read =>
  (text) => ({ parameter, text })

const oneOf =
  (parameter: LetterParameter, known: readonly string[]): Read =>
  (value) => {
    const text = known.find((each) => each.toLowerCase() === value.toLowerCase())
    if (text !== undefined) return { parameter, text }
    const allowed = known.map((each) => each.toLowerCase())
    return { message: `'${value}' is none of ${allowed.join(', ')}`, allowed }
  }

/** `age` has no parameter: it is written for dates. */
interface KnownKey extends LetterQueryKey {
  readonly parameter: LetterParameter | null
  readonly read: Read
}

function key(
  name: string,
  parameter: LetterParameter | null,
  [means, example]: readonly [means: string, example: string],
  read: Read,
  words: readonly string[] = [],
): KnownKey {
  const values = words.map((word) => word.toLowerCase())
  return { key: name, parameter, means, example, values, read }
}

const plainKey = (name: string, parameter: LetterParameter, means: string, example: string): KnownKey =>
  key(name, parameter, [means, example], asIs(parameter))

const wordKey = (name: 'status' | 'outcome', words: readonly string[], means: string, example: string) =>
  key(name, name, [means, example], oneOf(name, words), words)

/** In the order in which `formatLetterQuery` writes them. */
const KEYS: readonly KnownKey[] = [
  wordKey('status', ['Pending', 'Resolved', 'Expired'], 'what became of it', 'status:pending'),
  wordKey('outcome', ['confirmed', 'unconfirmed'], 'what is known of its retry', 'outcome:unconfirmed'),
  // The server knows which there are.
  key('source', 'source', ['the kind of place it came from', 'source:queues'], (value) => ({
    parameter: 'source',
    text: value.toLowerCase(),
  })),
  plainKey('engine', 'engine', 'the engine that failed', 'engine:hmac'),
  plainKey('queue', 'originalQueue', 'the queue it came from', 'queue:orders'),
  plainKey('signature', 'signature', 'the group of its error', 'signature:1-4f2a9c'),
  plainKey('key', 'instanceId', 'its instance or key', 'key:customer-42'),
  plainKey('correlation', 'correlationId', 'its correlation id', 'correlation:7d1f'),
  key('attempts', 'minAttempts', ['failed at least so often; 3 means >=3', 'attempts:>=3'], readAttempts),
  key('age', null, ['time since its last failure; s m h d w', 'age:>2d'], readAge),
  key('from', 'fromDate', ['last failure at or after this time', 'from:2027-01-01'], instantAs('fromDate')),
  key('to', 'toDate', ['last failure before this time', 'to:2027-01-01T12:00:00Z'], instantAs('toDate')),
  key('error', 'q', ['text in the error, ids, headers or payload', 'error:"timed out"'], readSearch),
]

export const LETTER_QUERY_KEYS: readonly LetterQueryKey[] = KEYS

/** Terms with problems are ignored; the caller decides whether that is enough. */
export function parseLetterQuery(text: string, nowMs: number): ParsedLetterQuery {
  const found = new Map<LetterParameter, string>()
  const problems: LetterQueryProblem[] = []
  const free: Term[] = []
  for (const term of termsOf(text)) {
    if (term.key === null && term.closed) {
      free.push(term)
      continue
    }
    const reading = readTerm(term, nowMs)
    if ('message' in reading) problems.push(problem(term, reading))
    else if (found.has(reading.parameter)) problems.push(problem(term, { message: twice(reading.parameter) }))
    else found.set(reading.parameter, reading.text)
  }
  const [first] = free
  if (first !== undefined) {
    const words = readSearch(free.map(({ value }) => value).join(' '))
    if ('message' in words) problems.push(problem(first, words))
    else if (found.has('q')) problems.push(problem(first, { message: twice('q') }))
    else found.set('q', words.text)
  }
  return { filter: Object.fromEntries(found), problems: problems.sort((a, b) => a.start - b.start) }
}

/** Dates a round time back are written as `age`. */
export function formatLetterQuery(filter: LetterParameters, nowMs: number): string {
  const { q, ...named }: LetterParameters = filter
  const terms = KEYS.flatMap(({ key: name, parameter }) => {
    const value = parameter === null || parameter === 'q' ? undefined : named[parameter]
    if (value === undefined) return []
    if (name === 'attempts') return [`attempts:>=${value}`]
    if (name === 'status') return [`status:${value.toLowerCase()}`]
    const age = name === 'from' || name === 'to' ? roundAge(value, nowMs) : null
    if (age !== null) return [`age:${name === 'to' ? '>' : '<'}${age}`]
    return [`${name}:${quoteIfNeeded(value)}`]
  })
  return [...terms, ...(q === undefined ? [] : [formatSearch(q)])].join(' ')
}

interface Term {
  readonly start: number
  readonly given: string
  /** null: text to search for. */
  readonly key: string | null
  readonly value: string
  readonly closed: boolean
}

/** An optional key, then a quoted value, or everything up to the next space. */
const TERM = /(?:([A-Za-z]+):)?(?:"((?:[^"\\]|\\.)*)("?)|(\S*))/suy
const SPACES = /\s*/y

function termsOf(text: string): Term[] {
  const terms: Term[] = []
  for (let start = skipSpaces(text, 0); start < text.length; ) {
    TERM.lastIndex = start
    const match = TERM.exec(text)
    if (match === null) break
    const [given, name, quoted, end, bare] = match
    const value = quoted === undefined ? (bare ?? '') : unescaped(quoted)
    terms.push({
      start,
      given,
      key: name?.toLowerCase() ?? null,
      value,
      closed: quoted === undefined || end === '"',
    })
    start = skipSpaces(text, start + given.length)
  }
  return terms
}

function skipSpaces(text: string, from: number): number {
  SPACES.lastIndex = from
  SPACES.test(text)
  return SPACES.lastIndex
}

/** Other backslashes stay: paths and patterns are full of them. */
const unescaped = (text: string): string => text.replace(/\\(["\\])/g, '$1')

const quoted = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`

const quoteIfNeeded = (text: string): string => (/^[^\s"][^\s]*$/u.test(text) ? text : quoted(text))

/** Unquoted where the words would be read back the same. */
function formatSearch(q: string): string {
  const words = q.split(' ')
  const plain = words.every((word) => /^[^\s"]\S*$/u.test(word) && !/^[A-Za-z]+:/.test(word))
  return plain ? q : quoted(q)
}

function readTerm(term: Term, nowMs: number): Reading {
  if (!term.closed) return { message: 'the quote has no end, put a " after the value' }
  const known = KEYS.find((each) => each.key === term.key)
  if (known === undefined) {
    const allowed = KEYS.map((each) => each.key)
    const search = `to search for it as text, put it in double quotes: ${quoted(term.given)}`
    return { message: `'${term.key}' is none of the keys ${allowed.join(', ')}; ${search}`, allowed }
  }
  if (term.value === '')
    return { message: `it has no value, write one such as ${known.example}`, allowed: known.values }
  return known.read(term.value, nowMs)
}

const problem = (
  { given, start }: Term,
  { message, allowed = [] }: Extract<Reading, { message: string }>,
): LetterQueryProblem => ({ given, start, message, allowed })

const TWICE: { readonly [Name in LetterParameter]?: string } = {
  q: 'letters are searched for one text; put all words in one pair of double quotes',
  fromDate: 'another term already says after when it failed last; leave one of them out',
  toDate: 'another term already says before when it failed last; leave one of them out',
}

const twice = (parameter: LetterParameter): string => {
  const name = KEYS.find((each) => each.parameter === parameter)?.key
  return TWICE[parameter] ?? `another term already says '${name}'; leave one of them out`
}

const ATTEMPTS = /^(>=?)?(\d{1,9})$/

/** `3` means `>=3`: nobody looks for exactly three failures. */
function readAttempts(value: string): Reading {
  const [, operator, digits] = ATTEMPTS.exec(value) ?? []
  const count = Number(digits ?? Number.NaN) + (operator === '>' ? 1 : 0)
  if (count >= 1) return { parameter: 'minAttempts', text: String(count) }
  return { message: `'${value}' is no least number of attempts such as >=3, which is the same as >2 or 3` }
}

const UNITS_MS: ReadonlyMap<string, number> = new Map([
  ['w', 604_800_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
])

const AGE = /^([<>]=?)(\d{1,6})([smhdw])$/

function readAge(value: string, nowMs: number): Reading {
  const [, operator = '', digits, unit = ''] = AGE.exec(value) ?? []
  if (digits === undefined) {
    return { message: `'${value}' is no age such as >2d or <1h; the units are s, m, h, d and w` }
  }
  const at = new Date(nowMs - Number(digits) * (UNITS_MS.get(unit) ?? 0))
  // The server does not read the form of dates before the year 1.
  if (!(at.getUTCFullYear() >= 1)) return { message: `'${value}' lies before all dates, give a shorter age` }
  return { parameter: operator.startsWith('>') ? 'toDate' : 'fromDate', text: at.toISOString() }
}

/** Beyond this the date itself reads better. */
const MAX_ROUND = 999

/** null: not a whole number of any unit. */
function roundAge(instant: string, nowMs: number): string | null {
  const parsed = parseTimestamp(dateTimeOf(instant))
  if (!parsed.ok || parsed.at % 1000n !== 0n) return null
  const ageMs = nowMs - Number(parsed.at / 1000n)
  for (const [unit, unitMs] of UNITS_MS) {
    if (ageMs > 0 && ageMs % unitMs === 0)
      return ageMs / unitMs <= MAX_ROUND ? `${ageMs / unitMs}${unit}` : null
  }
  return null
}

/** A date is its midnight in UTC. */
const dateTimeOf = (text: string): string => (/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text)

function instantAs(parameter: 'fromDate' | 'toDate'): Read {
  return (text) => {
    const parsed = parseTimestamp(dateTimeOf(text))
    return parsed.ok
      ? { parameter, text }
      : { message: `${parsed.reason}, nor a date such as 2027-01-01; for a time back write age:>2d` }
  }
}

function readSearch(text: string): Reading {
  const characters = [...text].length
  if (characters >= MIN_SEARCH && characters <= MAX_SEARCH) return { parameter: 'q', text }
  return {
    message: `a text to search for needs ${MIN_SEARCH} to ${MAX_SEARCH} characters, this has ${characters}`,
  }
}
