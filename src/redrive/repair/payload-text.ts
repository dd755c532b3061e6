/** Payloads that can be repaired: JSON in UTF-8, and not without end. */

import { MOST_PAYLOAD_BYTES } from './repair-bounds.ts'

/** Keeps a byte order mark, which is no JSON. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text, or why there is none. */
export type PayloadText =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly reason: string }

/** The text of a payload, if that is JSON. */
export function payloadText(payload: Uint8Array): PayloadText {
  if (payload.length > MOST_PAYLOAD_BYTES) return { ok: false, reason: 'the payload is larger than 16 MiB' }
  if (payload.length === 0) return { ok: false, reason: 'the payload is empty, and no JSON' }
  let text: string
  try {
    text = utf8.decode(payload)
  } catch {
    return { ok: false, reason: 'the payload is no UTF-8, and no JSON' }
  }
  try {
    JSON.parse(text)
  } catch {
    return { ok: false, reason: 'the payload is no JSON' }
  }
  return { ok: true, text }
}
