/** Keys as the index of letters with the same key has them: short, and of one length. */
import { createHash } from 'node:crypto'
import type { EventFacts } from './event.ts'

/** The first eight bytes of the key's SHA-256 as a signed integer. Other keys may have the same: compare the keys too. */
export const sameKeyOf = (key: Uint8Array): bigint =>
  createHash('sha256').update(key).digest().readBigInt64BE()

/** The key that an event is about: the record's, or the one that was put into it (`key_format: uber`). */
export const eventKey = (key: Uint8Array | null, { originalKey }: EventFacts): Uint8Array | null =>
  originalKey === undefined ? key : Buffer.from(originalKey, 'base64')
