/** Messages on the wire: content types, and texts where only some characters may stand. */
import { isUtf8 } from 'node:buffer'
import { isJson } from '../../../core/json/tokens.ts'
import type { OutboxMessage } from '../table/message.ts'

export const JSON_TYPE = 'application/json'
export const BYTES_TYPE = 'application/octet-stream'

/** Up to this size JSON is parsed to know it, which takes a fraction of sending it. */
const MOST_PARSED = 65_536

/** The header's case does not matter; null when there is none. */
export function namedContentType({ headers }: Pick<OutboxMessage, 'headers'>): string | null {
  for (const [name, value] of Object.entries(headers)) {
    if (name.toLowerCase() === 'content-type' && value.trim() !== '') return value
  }
  return null
}

/** Large payloads count as JSON when they begin and end like an object or a list. */
export function guessedContentType(payload: Uint8Array): string {
  return looksLikeJson(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength))
    ? JSON_TYPE
    : BYTES_TYPE
}

function looksLikeJson(bytes: Buffer): boolean {
  const first = firstVisible(bytes, 0, 1)
  const last = firstVisible(bytes, bytes.length - 1, -1)
  if (first === undefined || last === undefined) return false
  const isEnclosed = (first === OBJECT && last === OBJECT_END) || (first === LIST && last === LIST_END)
  if (bytes.length > MOST_PARSED) return isEnclosed
  if (!isEnclosed && !BEGINNINGS.has(first)) return false
  return isUtf8(bytes) && isJson(bytes.toString('utf8'))
}

const [OBJECT, OBJECT_END, LIST, LIST_END] = Buffer.from('{}[]')
const BEGINNINGS = new Set(Buffer.from('"-0123456789tfn'))
const WHITE_SPACE = new Set(Buffer.from(' \t\r\n'))

function firstVisible(bytes: Buffer, from: number, step: 1 | -1): number | undefined {
  let i = from
  while (WHITE_SPACE.has(bytes[i] ?? -1)) i += step
  return bytes[i]
}

const PLAIN = /^[\x21-\x24\x26-\x7e]*$/
const TOKEN = /^[A-Za-z0-9!#$&'*+\-.^_`|~]*$/

/** Leaves visible ASCII apart from `%`; `decodeURIComponent` restores the text. */
export const percentEncoded = (text: string): string => (PLAIN.test(text) ? text : encoded(text, PLAIN))

/** For names, and for parameters without quotes. */
export const tokenEncoded = (text: string): string => (TOKEN.test(text) ? text : encoded(text, TOKEN))

export function encoded(text: string, allowed: RegExp): string {
  let result = ''
  for (const byte of Buffer.from(text, 'utf8')) {
    const character = String.fromCharCode(byte)
    const isPlain = byte < 0x80 && allowed.test(character)
    result += isPlain ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return result
}
