/**
 * Row keys, `{name}-{YYYYMMDDTHHMMSSffffff}{number}Z`, of letters and history rows within their engine. The number follows the microseconds
 * like further digits: keys are unique and sort by time and number. Rows before version 19 of the schema have none.
 *
 * Clients keep keys in Azure tables too: characters that Azure forbids are percent-encoded, in the key only.
 */
import { type Instant, instant } from './clock.ts'
import { isTimestamp, parseTimestamp } from './timestamp.ts'

/** Forbidden by Azure (`/ \ # ?` and control characters), and the sign of encoding. */
const FORBIDDEN = /[%/\\#?\p{Cc}]/gu

const ENCODED = /(?:%[0-9A-F]{2})+/g

/** At least; up to a million millions, keys sort like their numbers. */
export const NUMBER_DIGITS = 12

const KEY = /^(.*)-(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})(\d{6})(\d{12}|[1-9]\d{12,17})?Z$/su

export interface RowKey {
  readonly name: string
  readonly at: Instant
  /** null: the key ends with the microseconds. */
  readonly number: bigint | null
}

export function formatRowKey({ name, at, number }: RowKey): string {
  if (!isTimestamp(at)) throw new RangeError(`instant ${at} lies outside the years 0001 to 9999`)
  const micros = ((at % 1_000_000n) + 1_000_000n) % 1_000_000n
  const digits = number === null ? '' : String(number).padStart(NUMBER_DIGITS, '0')
  return `${encodeName(name)}-${secondsOf(at - micros)}${String(micros).padStart(6, '0')}${digits}Z`
}

/** Cached: rows written or read together share few seconds. */
let lastSecond = { at: 0n, text: '19700101T000000' }

function secondsOf(at: bigint): string {
  if (at !== lastSecond.at) {
    const text = new Date(Number(at / 1000n)).toISOString().slice(0, 19).replace(/[-:]/g, '')
    lastSecond = { at, text }
  }
  return lastSecond.text
}

/** null if `formatRowKey` would never write it. */
export function parseRowKey(rowKey: string): RowKey | null {
  const match = KEY.exec(rowKey)
  if (match === null) return null
  const [encoded = '', year, month, day, hour, minute, second, micros, digits] = match.slice(1)
  const parsed = parseTimestamp(`${year}-${month}-${day}T${hour}:${minute}:${second}.${micros}Z`)
  const name = decodeName(encoded)
  const number = digits === undefined ? null : BigInt(digits)
  return parsed.ok && name !== null ? { name, at: instant(parsed.at), number } : null
}

/** `shortKey` is NULL unless the key has no number. */
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

/** Of two spellings of a name, only the one that encodes to itself is a key. */
function decodeName(encoded: string): string | null {
  const name = encoded.replace(ENCODED, (bytes) =>
    Buffer.from(bytes.replaceAll('%', ''), 'hex').toString('utf8'),
  )
  return encodeName(name) === encoded ? name : null
}
