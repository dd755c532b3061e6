/** Keys of messages that are logically the same: the same parts give the same uuid, in whatever language. */
import { createHash } from 'node:crypto'
import { failure } from '../../../core/errors.ts'

/** A text or a whole number. */
export type KeyPart = string | number | bigint

/**
 * The key of an event: `createKey('shop', 'order', '17', 'placed')`. Case does not matter, and no part can run into the
 * next. An empty part is refused: unrelated messages would share a key.
 */
export function createKey(
  tenantId: string,
  category: string,
  entityId: KeyPart,
  kind: string,
  version: KeyPart = 0,
): string {
  const parts = Object.entries({ tenantId, category, entityId, kind, version })
  const canonical = parts.map(([name, part]) => canonicalPart(name, part)).join(':')
  return guidOf(createHash('sha256').update(canonical, 'utf8').digest())
}

function canonicalPart(name: string, part: unknown): string {
  if (part === '' || part === undefined || part === null)
    throw failure('outbox_key_part_empty', { part: name })
  if (typeof part === 'bigint' || Number.isSafeInteger(part)) return String(part)
  if (typeof part !== 'string') {
    const reason = 'is neither a text nor a whole number of at most 15 digits, so no key can be made of it'
    throw failure('outbox_message_invalid', { field: name, reason })
  }
  return lowerCase(part).replaceAll('%', '%25').replaceAll(':', '%3a')
}

/**
 * Lower case as .NET's invariant culture has it, character by character. JavaScript treats the last sigma of a Greek
 * word specially and takes U+0130 apart: the keys of two producers would differ.
 */
function lowerCase(text: string): string {
  if (/^\p{ASCII}*$/u.test(text)) return text.toLowerCase()
  return Array.from(text, (character) => (character === '\u0130' ? character : character.toLowerCase())).join(
    '',
  )
}

/** The first 16 bytes as a .NET Guid: the first three groups are little-endian. */
function guidOf(bytes: Buffer): string {
  const guid = Buffer.from(bytes.subarray(0, 16))
  guid.subarray(0, 4).reverse()
  guid.subarray(4, 6).reverse()
  guid.subarray(6, 8).reverse()
  const hex = guid.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
