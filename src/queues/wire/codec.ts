/**
 * Messages as bytes, in the two formats of the queue API. A body that cannot be decoded is refused with the
 * decoder's own text; JSON is as strict on input as its schema, binary skips fields it does not know.
 */
import {
  create,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
  toBinary,
  toJsonString,
} from '@bufbuild/protobuf'
import { BartlebyError, failure } from '../../core/errors.ts'
import { duplicateMember } from './duplicate-members.ts'

export type Format = 'json' | 'protobuf'

/** What a format writes: JSON as text, binary as bytes. */
export type Encoded = string | Uint8Array

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decoders quote what they stumble over, which may be megabytes long. */
const SHOWN_CHARACTERS = 500

/** Runs a decoder; whatever it throws says what is wrong with the body. */
export function decoding<T>(decode: () => T): T {
  try {
    return decode()
  } catch (error) {
    if (error instanceof BartlebyError) throw error
    const text = error instanceof Error ? error.message : String(error)
    const reason = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}...` : text
    throw failure('body_undecodable', { reason: reason.toWellFormed() }, { cause: error })
  }
}

/** The JSON value in a body; a zero-length body has none and is refused, as is one that names a member twice. */
export function parseJson(body: Uint8Array): JsonValue {
  const text = utf8.decode(body)
  const value: JsonValue = JSON.parse(text)
  const twice = duplicateMember(text, value)
  if (twice !== null) throw new Error(`duplicate member ${JSON.stringify(twice)}`)
  return value
}

/** The message in a body. */
export function decodeMessage<D extends DescMessage>(
  schema: D,
  body: Uint8Array,
  format: Format,
): MessageShape<D> {
  return decoding(() =>
    format === 'protobuf' ? fromBinary(schema, body) : fromJson(schema, parseJson(body)),
  )
}

/** A message as a body. */
export function encodeMessage<D extends DescMessage>(
  schema: D,
  fields: MessageInitShape<D>,
  format: Format,
): Encoded {
  const message = create(schema, fields)
  return format === 'protobuf' ? toBinary(schema, message) : toJsonString(schema, message)
}
