/** Random request bodies: noise, JSON that is no request, and requests with a mind of their own. */

import { Buffer } from 'node:buffer'
import { type JsonValue, toBinary, fromJson as toMessage } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { CALLS, FIELDS, message, type Path } from '../world/messages.ts'

export interface RandomBody {
  readonly path: Path
  readonly contentType: 'application/json' | 'application/protobuf'
  readonly bytes: Uint8Array
}

/** Names and ids that exist in the store under test, so that some requests come far. */
export interface Known {
  readonly queues: readonly string[]
  readonly ids: readonly string[]
}

const NASTY = [
  '',
  ' ',
  '~',
  '\0',
  'a\0b',
  '\ud800',
  'é',
  '𝒳',
  "'; DROP TABLE items; --",
  '%s',
  '../..',
  'q q',
]

/** None of them makes a lease wait longer than some milliseconds. */
const DURATIONS = [
  '11ms',
  '0',
  '5x',
  '-1s',
  '16m',
  '10ms',
  '1',
  '1e3s',
  '.s',
  '9223372036854775807ns',
  '15m0.1s',
]
/** Valid ones are long: what is due later, in the middle of a comparison, would look like a change. */
const TIMEOUTS = [
  '0',
  '5x',
  '-1s',
  '1',
  '1e3s',
  '.s',
  '9223372036854775807ns',
  '1m',
  '16m',
  '24h',
  '2562047h',
  '1ns',
]

const INSTANTS = [
  '0001-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999999999Z',
  '1969-12-31T23:59:59.999999999Z',
  '2027-01-01T00:00:00+14:00',
]
const NO_INSTANTS = ['2030-02-30T00:00:00Z', 'yesterday', '']

const INTEGERS = [0, 1, 2, -1, 1000, 1001, 65_536, 65_537, 2 ** 31 - 1, -(2 ** 31), '7']
const NO_INTEGERS = [2 ** 31, 1.5, '0x7', 1e21]

const anyText = fc.oneof(
  fc.constantFrom(...NASTY),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.integer({ min: 250, max: 3_000 }).map((length) => 'x'.repeat(length)),
)

const anything: fc.Arbitrary<JsonValue> = fc.jsonValue({ maxDepth: 2 }).map((value) => value as JsonValue) // JSON by construction

function textOf(name: string, known: Known): fc.Arbitrary<JsonValue> {
  if (name === 'queue_name' || name === 'dead_queue') {
    return fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...known.queues) }, anyText)
  }
  if (name === 'request_timeout') return fc.constantFrom(...DURATIONS)
  if (name.endsWith('_timeout')) return fc.oneof(fc.constantFrom(...TIMEOUTS), anyText)
  if (/^(id|ids|pivot|source_id)$/.test(name)) return fc.oneof(fc.constantFrom('', ...known.ids), anyText)
  return anyText
}

/** A value for one field, most of the time of its type. */
function fieldValue(name: string, type: string, known: Known, depth: number): fc.Arbitrary<JsonValue> {
  const right = (): fc.Arbitrary<JsonValue> => {
    if (type.startsWith('[')) {
      return fc.array(fieldValue(name, type.slice(1, -1), known, depth + 1), { maxLength: 4 })
    }
    switch (type) {
      case 'string':
        return textOf(name, known)
      case 'int32':
        return fc.oneof(
          { weight: 12, arbitrary: fc.constantFrom<JsonValue>(...INTEGERS) },
          { weight: 1, arbitrary: fc.constantFrom<JsonValue>(...NO_INTEGERS) },
        )
      case 'bool':
        return fc.boolean()
      case 'bytes':
        return fc.oneof(
          { weight: 12, arbitrary: fc.base64String({ maxLength: 40 }) },
          { weight: 1, arbitrary: anyText },
        )
      case 'TS':
        return fc.oneof(
          { weight: 12, arbitrary: fc.constantFrom(...INSTANTS) },
          { weight: 1, arbitrary: fc.constantFrom(...NO_INSTANTS) },
        )
      default:
        return depth > 3 ? fc.constant({}) : requestOf(type, known, depth + 1)
    }
  }
  return fc.oneof({ weight: 40, arbitrary: right() }, { weight: 1, arbitrary: anything })
}

function requestOf(messageName: string, known: Known, depth = 0): fc.Arbitrary<JsonValue> {
  const fields = Object.entries(FIELDS[messageName] ?? {})
  const record: Record<string, fc.Arbitrary<JsonValue>> = {}
  for (const [name, [, type]] of fields) record[name] = fieldValue(name, type, known, depth)
  const requiredKeys = depth === 0 && 'queue_name' in record ? ['queue_name'] : []
  // JSON values under names; names that are left out are absent and not undefined.
  const plain = fc.record(record, { requiredKeys }) as fc.Arbitrary<{ [name: string]: JsonValue }>
  const stranger = fc
    .tuple(plain, fc.string(), anything)
    .map(([body, name, value]) => ({ ...body, [name]: value }))
  return fc.oneof({ weight: 40, arbitrary: plain }, { weight: 1, arbitrary: stranger })
}

const utf8 = (text: string): Uint8Array => Buffer.from(text, 'utf8')

/** JSON as binary where it is a message; what is none stays text, which is noise to a binary decoder. */
function asBinary(messageName: string, body: JsonValue): Uint8Array {
  try {
    const schema = message(messageName)
    return toBinary(schema, toMessage(schema, body, { ignoreUnknownFields: true }))
  } catch {
    return utf8(JSON.stringify(body))
  }
}

/** Cut short, or with one byte changed. */
const damaged = (bytes: Uint8Array, at: number, value: number, cut: boolean): Uint8Array => {
  if (bytes.length === 0) return bytes
  const place = at % bytes.length
  return cut ? bytes.slice(0, place) : bytes.with(place, value)
}

/** Random bodies for random calls. */
export function randomBodies(known: Known): fc.Arbitrary<RandomBody> {
  // The calls of the contract, as its table lists them.
  const paths = Object.keys(CALLS) as Path[]
  return fc.tuple(fc.constantFrom(...paths), fc.boolean()).chain(([path, binary]) => {
    const [messageName] = CALLS[path]
    const contentType = binary ? 'application/protobuf' : 'application/json'
    const encode = (body: JsonValue) => (binary ? asBinary(messageName, body) : utf8(JSON.stringify(body)))
    const request = requestOf(messageName, known).map(encode)
    const bytes = fc.oneof(
      { weight: 8, arbitrary: request },
      {
        weight: 2,
        arbitrary: fc
          .tuple(request, fc.nat(), fc.integer({ min: 0, max: 255 }), fc.boolean())
          .map(([whole, at, value, cut]) => damaged(whole, at, value, cut)),
      },
      { weight: 1, arbitrary: anything.map(encode) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 100 }) },
    )
    return bytes.map((body): RandomBody => ({ path, contentType, bytes: body }))
  })
}
