/** Messages as they stand in queues and columns: base64 or plain text, with or without the mark of a letter; their bytes are never changed. */
import { failure } from '../../core/errors.ts'

/** Whose encoding a message has, in a table or a queue. */
export const MESSAGE = { plain: 'plain', base64: 'base64' } as const

export interface FoundMessage {
  readonly payload: Uint8Array
  readonly encoding: string
}

/** What a queue takes of one message, as text. */
const MOST_BYTES = 65_536

const BASE64 =
  /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$|^(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$/

/**
 * A message as it stood in a queue or a column. Base64 only where what it encodes is JSON: `test1234` is good base64 too. Either way the
 * same text goes back.
 */
export function messageOf(text: string): FoundMessage {
  if (BASE64.test(text)) {
    const payload = Buffer.from(text, 'base64')
    if (payload.toString('base64') === text && isJson(payload)) return { payload, encoding: MESSAGE.base64 }
  }
  return { payload: Buffer.from(text.toWellFormed(), 'utf8'), encoding: MESSAGE.plain }
}

/** Texts, lists and objects: a number in base64 is as likely a word. */
function isJson(bytes: Buffer): boolean {
  if (!/^\s*["[{]/.test(bytes.toString('latin1', 0, 64))) return false
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return true
  } catch {
    return false
  }
}

/** Top-level members of a JSON object of at most 64 KiB; nothing of anything else. */
export function membersOf(payload: Uint8Array): Readonly<Record<string, unknown>> {
  if (payload.length > 65_536 || payload[payload.length - 1] === undefined) return {}
  try {
    const value: unknown = JSON.parse(Buffer.from(payload).toString('utf8'))
    // Whatever is an object and no list has members by name.
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : {}
  } catch {
    return {}
  }
}

/** The member that tells which letter a message was sent back from. */
export const MARK = '_bartleby'

/** The letter that a message was sent back from, as it says itself. */
export function markOf(payload: Uint8Array): bigint | null {
  if (!Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).includes(MARK)) return null
  const mark = membersOf(payload)[MARK]
  const letter = typeof mark === 'object' && mark !== null && 'letter' in mark ? String(mark.letter) : ''
  return /^\d{1,18}$/.test(letter) ? BigInt(letter) : null
}

/** A JSON object with the mark as its last member, every other byte as it was; anything else stays what it is. */
export function marked(payload: Uint8Array, letter: bigint, attempt: number): Uint8Array {
  const members = Object.keys(membersOf(payload))
  const end = Buffer.from(payload).lastIndexOf('}')
  const isObject = /^\s*\{/.test(Buffer.from(payload).toString('latin1', 0, 64))
  if (!isObject || end < 0 || payload.length > 65_536) return payload
  if (members.length === 0 && !/^\s*\{\s*\}\s*$/.test(Buffer.from(payload).toString('utf8'))) return payload
  const mark = `${members.length === 0 ? '' : ','}"${MARK}":{"letter":"${letter}","attempt":${attempt}}`
  return Buffer.concat([payload.subarray(0, end), Buffer.from(mark), payload.subarray(end)])
}

/** A message as it stands in a queue. Bytes that are no text can only be base64. */
export function textOf(payload: Uint8Array, encoding: string, queue: string): string {
  const isText = encoding !== MESSAGE.base64 && isXmlText(payload)
  const text = isText ? Buffer.from(payload).toString('utf8') : Buffer.from(payload).toString('base64')
  const bytes = Buffer.byteLength(text)
  if (bytes === 0)
    throw failure('letter_message_refused', { reason: 'it is empty, and a queue takes no empty message' })
  if (bytes > MOST_BYTES)
    throw failure('letter_message_refused', {
      reason: `it has ${bytes} bytes, and queue '${queue}' takes ${MOST_BYTES} at most; edit it, or discard it`,
    })
  return text
}

/** Messages travel in XML, which has no control characters but these. */
function isXmlText(payload: Uint8Array): boolean {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
    return !/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/.test(text)
  } catch {
    return false
  }
}
