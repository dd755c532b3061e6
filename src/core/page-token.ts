/**
 * Continuation tokens: opaque cursors, bound to the filters of their list. The seal is no secret: a forger only gets a page that they may
 * read anyway. It tells a mistake (cut short, other filters) from a cursor.
 */
import { createHash } from 'node:crypto'
import { failure } from './errors.ts'

/** Unordered. Name the list among them: two lists may have the same filters. */
export type TokenFields = Readonly<Record<string, string>>

export interface PageRequest {
  readonly limit?: number
  readonly continuationToken?: string | null
}

const PURPOSE = 'bartleby page token 1'
const SEAL_BYTES = 16
/** Far beyond what any list needs, and little to hash. */
const MAX_CHARACTERS = 4_096

export const boundTo = (list: string, filters: Readonly<Record<string, unknown>>): TokenFields => {
  const given = Object.entries(filters).filter(([, value]) => value != null)
  return { ...Object.fromEntries(given.map(([name, value]) => [name, String(value)])), list }
}

/** The page size is none of the filters. */
export function encodePageToken(filters: TokenFields, cursor: TokenFields): string {
  const place = Buffer.from(JSON.stringify(cursor))
  return Buffer.concat([seal(filters, place), place]).toString('base64url')
}

/** Throws for no token, or one made for other filters. */
export function decodePageToken(filters: TokenFields, token: string): Record<string, string> {
  const bytes = Buffer.from(token.slice(0, MAX_CHARACTERS), 'base64url')
  // Decoding skips foreign characters; only a token encodes to the same text again.
  if (bytes.toString('base64url') !== token || bytes.length <= SEAL_BYTES) throw malformed()
  const place = bytes.subarray(SEAL_BYTES)
  if (!bytes.subarray(0, SEAL_BYTES).equals(seal(filters, place))) {
    throw unusable('it was changed, or made for a list with other filters')
  }
  const cursor = parse(place)
  if (cursor === null) throw malformed()
  return cursor
}

function parse(place: Buffer): Record<string, string> | null {
  try {
    const cursor: unknown = JSON.parse(place.toString())
    if (typeof cursor !== 'object' || cursor === null || Array.isArray(cursor)) return null
    const fields = Object.entries(cursor).filter(
      (field): field is [string, string] => typeof field[1] === 'string',
    )
    return Object.fromEntries(fields)
  } catch {
    return null
  }
}

function seal(filters: TokenFields, place: Uint8Array): Buffer {
  const sorted = Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1))
  const digest = createHash('sha256')
    .update(JSON.stringify([PURPOSE, sorted]))
    .update(place)
    .digest()
  return digest.subarray(0, SEAL_BYTES)
}

const unusable = (reason: string) => failure('continuation_token_invalid', { reason })

export const malformed = () => unusable('it is malformed')
