/** items.import: items with a past. */
import type { Instant } from '../../core/clock.ts'
import { textBytes } from '../../core/content.ts'
import { idFromSerial, prefixOf, serialFromId } from '../../core/ksuid.ts'
import { type Integer, sql, type Transaction } from '../../store/database.ts'
import { rowsGiven } from '../../store/idioms.ts'
import type { StoredItem } from '../queue.ts'
import { allocateSerials } from '../records.ts'
import { SHELF } from '../schema.ts'

export type ItemToImport = Omit<StoredItem, 'id' | 'createdAt' | 'enqueueAt' | 'death'> & {
  readonly expireDeadline: Instant
}

/** A row whose source id the partition already holds is a no-op. */
const importRows = sql(
  'items.import',
  `INSERT INTO bartleby.items (id, part, shelf, leased, attempts, lease_deadline, created_at, expire_at, max_attempts, encoding, kind,
     reference, source_id, payload)
   SELECT given.id, $12, ${SHELF.queue}, given.leased, given.attempts, given.lease_deadline, $13, given.expire_at, given.max_attempts,
     given.encoding, given.kind, given.reference, given.source_id, given.payload
   FROM unnest($1::bigint[], $2::smallint[], $3::int[], $4::bigint[], $5::bigint[], $6::int[], $7::bytea[], $8::bytea[],
     $9::bytea[], $10::bytea[], $11::bytea[]) AS given (id, leased, attempts, lease_deadline, expire_at, max_attempts, encoding, kind, reference, source_id, payload)
   WHERE true ON CONFLICT (part, source_id) WHERE source_id IS NOT NULL DO NOTHING
   RETURNING id`,
)

/** Rows per statement, to bound the memory of its parameters. */
const CHUNK = 1_000

/** Gives the serial of each item, null where its source id was held already. */
export async function importItems(
  tx: Transaction,
  part: number,
  now: Instant,
  items: readonly ItemToImport[],
): Promise<(number | null)[]> {
  const serials = await allocateSerials(tx, items.length)
  const made = new Set<number>()
  for (let from = 0; from < items.length; from += CHUNK) {
    const rows = items.slice(from, from + CHUNK).map((item, i) => ({
      id: serials[from + i],
      leased: item.isLeased ? 1 : 0,
      attempts: item.attempts,
      lease_deadline: item.leaseDeadline,
      expire_at: item.expireDeadline,
      max_attempts: item.maxAttempts,
      encoding: textBytes(item.encoding),
      kind: textBytes(item.kind),
      reference: textBytes(item.reference),
      source_id: textBytes(item.sourceId),
      payload: item.payload.length === 0 ? null : item.payload,
    }))
    for (const { id } of await rowsGiven<{ id: Integer }>(tx, importRows, rows, part, now))
      made.add(Number(id))
  }
  return serials.map((serial) => (made.has(serial) ? serial : null))
}

/** Partitions are few, and imports into dead queues rare. */
const partitionsWith = sql(
  'partitions.withPrefix',
  'SELECT part, id_prefix FROM bartleby.partitions WHERE id_prefix = ANY($1::text[])',
)

/** Items by primary key whose letters wait for their outcome. */
const readSent = sql(
  'items.sentBack',
  `SELECT id FROM bartleby.items WHERE part = $1 AND shelf = ANY($3::int[]) AND id = ANY($2::bigint[])
     AND (SELECT 1 FROM bartleby.letters WHERE letters.id = case_id) IS NOT NULL`,
)

/** Those of `ids` that name sent-back items. */
export async function sentItemIds(tx: Transaction, ids: readonly string[]): Promise<Set<string>> {
  const sent = new Set<string>()
  if (ids.length === 0) return sent
  const prefixes = [...new Set(ids.map(prefixOf))]
  for (const { part, id_prefix } of await tx.rows<{ part: Integer; id_prefix: string }>(
    partitionsWith,
    prefixes,
  )) {
    const serials = ids.flatMap((id) => serialFromId(id_prefix, id) ?? [])
    const rows = await tx.rows<{ id: Integer }>(readSent, Number(part), serials, Object.values(SHELF))
    for (const { id } of rows) sent.add(idFromSerial(id_prefix, Number(id)))
  }
  return sent
}
