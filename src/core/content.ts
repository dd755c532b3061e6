/**
 * Text and payload of items as the stores keep them: bytes, with NULL for "empty". Text is not stored as text,
 * because U+0000 is legal in it and PostgreSQL would refuse the row.
 */

const EMPTY = new Uint8Array(0)

/** The bytes to store for a text; null when it is empty. */
export const textBytes = (text: string): Uint8Array | null => (text === '' ? null : Buffer.from(text, 'utf8'))

/** The text that was stored. */
export const storedText = (bytes: Uint8Array | null): string =>
  bytes === null ? '' : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')

/** The payload that was stored. */
export const storedPayload = (bytes: Uint8Array | null): Uint8Array => bytes ?? EMPTY

/** The payload to store: strings are their UTF-8 bytes. */
export function payloadBytes(payload: Uint8Array | string | undefined): Uint8Array {
  if (payload === undefined) return EMPTY
  return typeof payload === 'string' ? Buffer.from(payload, 'utf8') : payload
}

/** Bytes as base64, for parameters that travel as JSON. */
export const base64 = (bytes: Uint8Array | null | undefined): string | null =>
  bytes == null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
