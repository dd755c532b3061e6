/**
 * Which format a header names. Parameters and further alternatives are ignored: the value is cut at the
 * first `;` or `,`. No header at all means JSON.
 */
import type { Format } from '../queues/wire/codec.ts'

export type Negotiated =
  | { readonly format: Format }
  /** What the header says, when that is no format of ours. */
  | { readonly format: undefined; readonly given: string }

const JSON_FORMAT: Negotiated = { format: 'json' }
const PROTOBUF_FORMAT: Negotiated = { format: 'protobuf' }

export function negotiate(header: string | undefined): Negotiated {
  // The values that clients really send are found without cutting them up.
  if (header === undefined || header === 'application/json') return JSON_FORMAT
  if (header === 'application/protobuf') return PROTOBUF_FORMAT
  const given = (header.split(/[;,]/, 1)[0] ?? '').trim().toLowerCase()
  switch (given) {
    case '':
    case '*/*':
    case 'application/*':
    case 'application/json':
      return JSON_FORMAT
    case 'application/protobuf':
      return PROTOBUF_FORMAT
    default:
      return { format: undefined, given }
  }
}
