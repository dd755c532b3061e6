/**
 * Row keys: `{name}-{YYYYMMDDTHHMMSSffffff}{number}Z`, the key that a letter or a history row has within its engine. The number of
 * the row stands behind the microseconds as if they had more digits: no two keys are the same, and as texts they are in the order of
 * time and number. Rows of versions before 19 of the schema have none: they had a microsecond for themselves.
 *
 * Clients keep keys in Azure tables too, so what Azure forbids in a key is percent-encoded, in the key only.
 */
import { type Instant, instant } from './clock.ts'
import { isTimestamp, parseTimestamp } from './timestamp.ts'

/** What Azure forbids in a key (`/ \ # ?` and control characters), and the sign that marks an encoded one. */
const FORBIDDEN = /[%/\\#?\p{Cc}]/gu

const ENCODED = /(?:%[0-9A-F]{2})+/g

/** Digits that a number has at least: up to a million millions, keys sort as their numbers do. */
export const NUMBER_DIGITS = 12

const KEY = /^(.*)-(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})(\d{6})(\d{12}|[1-9]\d{12,17})?Z$/su

/** A row key in its parts. */
export interface RowKey {
  readonly name: string
  readonly at: Instant
  /** null: the key ends with the microseconds. */
  readonly number: bigint | null
}

/** The row key of what has this name, this time and this number. */
export function formatRowKey({ name, at, number }: RowKey): string {
  if (!isTimestamp(at)) throw new RangeError(`instant ${at} lies outside the years 0001 to 9999`)
  const micros = ((at % 1_000_000n) + 1_000_000n) % 1_000_000n
  const digits = number === null ? '' : String(number).padStart(NUMBER_DIGITS, '0')
  return `${encodeName(name)}-${secondsOf(at - micros)}${String(micros).padStart(6, '0')}${digits}Z`
}

/** The last whole second that was written: rows that are written or read together have few of them. */
let lastSecond = { at: 0n, text: '19700101T000000' }

function secondsOf(at: bigint): string {
  if (at !== lastSecond.at) {
    const text = new Date(Number(at / 1000n)).toISOString().slice(0, 19).replace(/[-:]/g, '')
    lastSecond = { at, text }
  }
  return lastSecond.text
}

/** The parts of a row key; null when `formatRowKey` would never write it. */
export function parseRowKey(rowKey: string): RowKey | null {
  const match = KEY.exec(rowKey)
  if (match === null) return null
  const [encoded = '', year, month, day, hour, minute, second, micros, digits] = match.slice(1)
  const parsed = parseTimestamp(`${year}-${month}-${day}T${hour}:${minute}:${second}.${micros}Z`)
  const name = decodeName(encoded)
  const number = digits === undefined ? null : BigInt(digits)
  return parsed.ok && name !== null ? { name, at: instant(parsed.at), number } : null
}

/** The number that a stored row has in its key; `shortKey` is NULL, unless it has none there. */
export const keyNumber = (id: number | bigint | string, shortKey: unknown): bigint | null =>
  shortKey === null ? BigInt(id) : null

/** A path of an address cannot end with these. */
const UNADDRESSABLE: readonly string[] = ['', '.', '..']

/** The row key in a source id of the form `{account}/{table}/{engine}/{row key}`; null: there is none that can be called by. */
export function keptRowKey(engine: string, sourceId: string): string | null {
  const parts = sourceId.split('/')
  const [, , partition, rowKey = ''] = parts
  return parts.length === 4 && partition === engine && !UNADDRESSABLE.includes(rowKey) ? rowKey : null
}

const encodeName = (name: string): string => name.replace(FORBIDDEN, percentEncode)

const percentEncode = (character: string): string =>
  [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')

/** Only what encodes back to the same text: of two spellings of one name, one is no key. */
function decodeName(encoded: string): string | null {
  const name = encoded.replace(ENCODED, (bytes) =>
    Buffer.from(bytes.replaceAll('%', ''), 'hex').toString('utf8'),
  )
  return encodeName(name) === encoded ? name : null
}
