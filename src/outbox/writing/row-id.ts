/**
 * Ids for tables whose database makes none: uuids of version 7. They ascend within a process, so that rows written in the
 * same moment keep their order.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'

/** A source of ids, each greater than the one before. */
export function rowIds(clock: Clock): () => string {
  // Milliseconds since 1970 and 4,096 parts of one: the first 60 bits that can be chosen.
  let last = 0n
  return () => {
    const us = clock.now()
    const present = ((us / 1_000n) << 12n) | (((us % 1_000n) << 12n) / 1_000n)
    last = present > last ? present : last + 1n
    const hex = last.toString(16).padStart(15, '0')
    // A random uuid ends with what this one needs behind the time.
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7${hex.slice(12)}-${randomUUID().slice(19)}`
  }
}
