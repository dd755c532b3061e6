/** What is read from a message of an engine: before it is handled, and where it dies unhandled. */
import { describeError } from '../../core/thrown.ts'
import { UNNAMED_INSTANCE } from '../../letters/letter.ts'

export type ReadMessage =
  | { readonly ok: true; readonly message: unknown }
  | { readonly ok: false; readonly reason: string }

/** Reads a payload as JSON in UTF-8. */
export function readMessage(payload: Uint8Array): ReadMessage {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(payload)
    return { ok: true, message: JSON.parse(text) }
  } catch (error) {
    if (payload.length === 0) return { ok: false, reason: 'it is empty' }
    // The decoder's own words differ between versions of Node, and the group of an error should not.
    if (error instanceof TypeError) return { ok: false, reason: 'it is not UTF-8' }
    return { ok: false, reason: describeError(error).errorMessage }
  }
}

const CORRELATION_ID = /^[\x21-\x7e]{1,128}$/

/** The correlation id that a message carries, when it is a usable one. */
export function correlationIdIn(message: unknown): string | null {
  if (typeof message !== 'object' || message === null || !('correlationId' in message)) return null
  const { correlationId } = message
  return typeof correlationId === 'string' && CORRELATION_ID.test(correlationId) ? correlationId : null
}

/** The instance of what is not done for one. */
export const PUBLISHER = UNNAMED_INSTANCE
const MAX_INSTANCE_ID = 256

/** The instance id that the application's function gave, in a form that can be stored and looked up. */
export function cleanInstanceId(given: unknown): string {
  if (typeof given !== 'string' && typeof given !== 'number' && typeof given !== 'bigint') return PUBLISHER
  const clean = String(given).replaceAll('\0', '').slice(0, MAX_INSTANCE_ID).toWellFormed()
  return clean === '' ? PUBLISHER : clean
}
