/** Payloads in JSON: UTF-8 as text, other bytes in base64. The bytes that come out are those that went in. */
import type { JsonObject } from '../../api/json-body.ts'
import { TEXT_ENCODINGS } from '../../api/shapes.ts'
import { refuse } from '../../core/errors.ts'

/** Bytes of a field, decoded as the field beside it says; null when there are none. */
export function optionalPayload(fields: JsonObject, name: string, encodingName: string): Uint8Array | null {
  const encoding = fields[encodingName] ?? null
  if (encoding !== null && encoding !== 'utf8' && encoding !== 'base64') {
    throw refuse(encodingName, `it is none of ${TEXT_ENCODINGS.join(', ')}`)
  }
  const text = fields[name] ?? null
  if (text === null) {
    if (encoding !== null) throw refuse(encodingName, `it is given without ${name}`)
    return null
  }
  if (typeof text !== 'string') throw refuse(name, 'give a text')
  return encoding === 'base64' ? fromBase64(name, text) : fromText(name, encodingName, text)
}

export function requiredPayload(fields: JsonObject, name: string, encodingName: string): Uint8Array {
  const bytes = optionalPayload(fields, name, encodingName)
  if (bytes === null) throw refuse(name, 'it is missing')
  return bytes
}

/** Half a character has no bytes in UTF-8; a replacement would change the payload unnoticed. */
function fromText(name: string, encodingName: string, text: string): Uint8Array {
  if (!text.isWellFormed()) {
    throw refuse(
      name,
      `it holds half a character (a lone surrogate); send the bytes with ${encodingName} 'base64'`,
    )
  }
  return Buffer.from(text, 'utf8')
}

/** Node skips what is not base64; only base64 encodes to the same text again. */
function fromBase64(name: string, text: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.toString('base64') !== text) throw refuse(name, 'it is not base64 with padding')
  return bytes
}
