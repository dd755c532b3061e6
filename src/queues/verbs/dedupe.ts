/** Dedupe keys: a repeated key within the window means that the item is there. A key is claimed in the transaction that inserts its item. */
import { type Instant, later } from '../../core/clock.ts'
import { type Session, sql } from '../../store/database.ts'
import type { Cycle } from '../cycles/cycle.ts'
import type { ItemId } from '../queue.ts'
import { allocateSerials, itemIdIn, type Partition } from '../records.ts'

/** A new key gives the item this serial; a known one has the id of the first item. */
export type DedupeAnswer =
  | { readonly outcome: 'new'; readonly serial: number }
  | { readonly outcome: 'existed'; readonly id: ItemId }

/** Claims a free or expired key. A concurrent claim of the same key waits for the outcome. */
const claimKey = sql(
  'dedupe.claim',
  `INSERT INTO bartleby.dedupe_keys AS known (queue_id, key, item_id, partition, until) VALUES ($1, $2, $3, $4, $5)
   ON CONFLICT (queue_id, key) DO UPDATE SET item_id = excluded.item_id, partition = excluded.partition, until = excluded.until
   WHERE known.until < $6`,
)
const readKey = sql(
  'dedupe.read',
  'SELECT item_id FROM bartleby.dedupe_keys WHERE queue_id = $1 AND key = $2',
)

/** Expired keys, oldest first, a bounded number. */
const forgetKeys = sql(
  'dedupe.forget',
  `DELETE FROM bartleby.dedupe_keys WHERE (queue_id, key) IN (
     SELECT queue_id, key FROM bartleby.dedupe_keys WHERE until < $1 ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED)`,
)
const forgetQueueKeys = sql('dedupe.forgetQueue', 'DELETE FROM bartleby.dedupe_keys WHERE queue_id = $1')

export async function resolveDedupeKeys(
  cycle: Cycle,
  partition: Partition,
  items: readonly { readonly dedupeKey: string | null }[],
  windowUs: bigint,
): Promise<(DedupeAnswer | undefined)[]> {
  // All serials are taken now: those the insert would take come after the ones of keyed items.
  const serials = await allocateSerials(cycle.tx, items.length)
  const answers = new Map<string, DedupeAnswer>()
  // In key order, so that two servers claiming the same keys cannot deadlock.
  const keys = [...new Set(items.flatMap((item) => item.dedupeKey ?? []))].sort()
  for (const key of keys) {
    const i = items.findIndex((item) => item.dedupeKey === key)
    answers.set(key, await claim(cycle, partition, key, serials[i] ?? 0, later(cycle.now, windowUs)))
  }
  const seen = new Set<string>()
  return items.map((item, i) => {
    if (item.dedupeKey === null) return { outcome: 'new', serial: serials[i] ?? 0 }
    const answer = answers.get(item.dedupeKey)
    if (answer?.outcome !== 'new' || !seen.has(item.dedupeKey)) {
      seen.add(item.dedupeKey)
      return answer
    }
    return { outcome: 'existed', id: itemIdIn(partition, answer.serial) }
  })
}

async function claim(
  cycle: Cycle,
  partition: Partition,
  key: string,
  serial: number,
  until: Instant,
): Promise<DedupeAnswer> {
  const { tx, queue, now } = cycle
  const bytes = Buffer.from(key, 'utf8')
  const id = itemIdIn(partition, serial)
  const claimed = await tx.run(claimKey, queue.queueId, bytes, id, partition.number, until, now)
  if (claimed === 1) return { outcome: 'new', serial }
  const [row] = await tx.rows<{ item_id: ItemId }>(readKey, queue.queueId, bytes)
  if (row === undefined) throw new Error('a dedupe key vanished while it was claimed')
  return { outcome: 'existed', id: row.item_id }
}

export const forgetDedupeKeys = (session: Session, now: Instant, limit: number): Promise<number> =>
  session.run(forgetKeys, now, limit)

export const forgetDedupeKeysOf = (session: Session, queueId: number): Promise<number> =>
  session.run(forgetQueueKeys, queueId)
