/**
 * Row keys: `{name}-{YYYYMMDDTHHMMSSffffffZ}`, the key that a letter or a history row has within its engine. Clients
 * keep them in Azure tables too, so what Azure forbids in a key is percent-encoded, in the key only.
 */
import { type Instant, instant } from './clock.ts'
import { isTimestamp, parseTimestamp } from './timestamp.ts'

/** What Azure forbids in a key (`/ \ # ?` and control characters), and the sign that marks an encoded one. */
const FORBIDDEN = /[%/\\#?\p{Cc}]/gu

const ENCODED = /(?:%[0-9A-F]{2})+/g

const KEY = /^(.*)-(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})(\d{6})Z$/su

/** The row key of what has this name and this time. */
export function formatRowKey(name: string, at: Instant): string {
  if (!isTimestamp(at)) throw new RangeError(`instant ${at} lies outside the years 0001 to 9999`)
  const micros = ((at % 1_000_000n) + 1_000_000n) % 1_000_000n
  const seconds = new Date(Number((at - micros) / 1000n)).toISOString().slice(0, 19)
  return `${encodeName(name)}-${seconds.replace(/[-:]/g, '')}${String(micros).padStart(6, '0')}Z`
}

/** The name and the time in a row key; null when `formatRowKey` would never write it. */
export function parseRowKey(rowKey: string): { name: string; at: Instant } | null {
  const match = KEY.exec(rowKey)
  if (match === null) return null
  const [encoded = '', year, month, day, hour, minute, second, micros] = match.slice(1)
  const parsed = parseTimestamp(`${year}-${month}-${day}T${hour}:${minute}:${second}.${micros}Z`)
  const name = decodeName(encoded)
  return parsed.ok && name !== null ? { name, at: instant(parsed.at) } : null
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
