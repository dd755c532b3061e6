/** What the headers of a family tell. */
import type { ExceptionFacts, Origin } from '../event.ts'
import { shownText } from '../wire/text.ts'
import { base64In, numberIn } from './encodings.ts'
import type { Family, FamilyHeader, Field } from './families.ts'
import type { HeaderValue, NamedHeaders } from './named-headers.ts'

/** What a tool tells of a dead record. */
export interface Told {
  readonly origin: Origin
  /** Where it died first, when that is another place. */
  readonly firstOrigin?: Origin
  readonly exception: ExceptionFacts
  readonly attempts: number | null
  /** The key that the record had originally, in base64. */
  readonly originalKey?: string
}

type Fields = { [F in Field]?: string }

const ORIGIN: ReadonlySet<Field> = new Set<Field>([
  'topic',
  'partition',
  'offset',
  'timestampMs',
  'consumerGroup',
  'destination',
])

/** How many bytes of a text are copied; the letter has the whole. */
const LIMITS: { readonly [F in Field]?: number } = {
  message: 32 * 1024,
  causeMessage: 32 * 1024,
  stack: 64 * 1024,
}
/** For texts that are hardly ever long. */
export const SHORT_TEXT = 4 * 1024

/** The largest number of each kind. */
const NUMBERS: { readonly [F in Field]?: bigint } = {
  partition: 2n ** 31n - 1n,
  attempts: 2n ** 31n - 1n,
  offset: 2n ** 63n - 1n,
  timestampMs: 2n ** 63n - 1n,
  failedAtMs: 2n ** 63n - 1n,
}

/** Reads the headers of a family: the newest hop, and the oldest when they differ. */
export function toldBy(family: Family, headers: NamedHeaders): Told {
  const newest: Fields = {}
  for (const header of family.headers) {
    if (header.tells !== null) read(newest, header, header.tells, headers.value(header.name, family.newest))
  }
  const origin = originOf(newest)
  const first = family.newest === family.oldest ? null : oldestOrigin(family, headers)
  return {
    origin,
    ...(first !== null && !sameOrigin(origin, first) ? { firstOrigin: first } : {}),
    exception: exceptionOf(newest),
    attempts: newest.attempts === undefined ? null : Number(newest.attempts),
  }
}

/** Only what is repeated can differ. */
function oldestOrigin(family: Family, headers: NamedHeaders): Origin | null {
  if (headers.repeated.size === 0) return null
  const oldest: Fields = {}
  for (const header of family.headers) {
    if (header.tells !== null && ORIGIN.has(header.tells)) {
      read(oldest, header, header.tells, headers.value(header.name, family.oldest))
    }
  }
  return originOf(oldest)
}

/** Adds what a value tells, unless another header has told it. */
function read(fields: Fields, header: FamilyHeader, field: Field, value: HeaderValue | undefined): void {
  if (value == null || fields[field] !== undefined) return
  const largest = NUMBERS[field]
  if (largest !== undefined) {
    const number = numberIn(value, header.as)
    if (number !== null && number <= largest) fields[field] = String(number)
    return
  }
  const text = shownText(header.as === 'b64' ? base64In(value) : value, LIMITS[field] ?? SHORT_TEXT)
  if (header.as === 'class: message') {
    const [name, message] = cutAt(text, ': ')
    fields.class = name
    if (message !== null) fields.message ??= message
  } else fields[field] = header.as === 'class in source' ? cutAt(text, ' in ')[0] : text
}

function cutAt(text: string, separator: string): [string, string | null] {
  const at = text.indexOf(separator)
  return at === -1 ? [text, null] : [text.slice(0, at), text.slice(at + separator.length)]
}

function originOf(fields: Fields): Origin {
  const origin: { -readonly [K in keyof Origin]: Origin[K] } = {}
  if (fields.topic) origin.topic = fields.topic
  if (fields.partition !== undefined) origin.partition = Number(fields.partition)
  if (fields.offset !== undefined) origin.offset = fields.offset
  if (fields.timestampMs !== undefined) origin.timestampMs = fields.timestampMs
  if (fields.consumerGroup) origin.consumerGroup = fields.consumerGroup
  if (fields.destination) origin.destination = fields.destination
  if (fields.failedAtMs !== undefined) origin.failedAtMs = fields.failedAtMs
  return origin
}

function exceptionOf(fields: Fields): ExceptionFacts {
  const exception: { -readonly [K in keyof ExceptionFacts]: ExceptionFacts[K] } = {}
  if (fields.class !== undefined) exception.class = fields.class
  if (fields.message !== undefined) exception.message = fields.message
  if (fields.stack !== undefined) exception.stack = fields.stack
  if (fields.causeClass !== undefined) exception.causeClass = fields.causeClass
  if (fields.causeMessage !== undefined) exception.causeMessage = fields.causeMessage
  return exception
}

const sameOrigin = (one: Origin, other: Origin): boolean =>
  one.topic === other.topic &&
  one.partition === other.partition &&
  one.offset === other.offset &&
  one.timestampMs === other.timestampMs &&
  one.consumerGroup === other.consumerGroup &&
  one.destination === other.destination
