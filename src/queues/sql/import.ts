/** items.import: items with a past, as given. */
import type { Instant } from '../../core/clock.ts'
import { textBytes } from '../../core/content.ts'
import { idFromSerial, prefixOf, serialFromId } from '../../core/ksuid.ts'
import { type Integer, sql, type Transaction, type Value } from '../../store/database.ts'
import type { StoredItem } from '../queue.ts'
import { allocateSerials } from '../records.ts'
import { SHELF } from '../schema.ts'

/** What an import says of an item. */
export type ItemToImport = Omit<StoredItem, 'id' | 'createdAt' | 'enqueueAt' | 'death'> & {
  readonly expireDeadline: Instant
}

const COLUMNS =
  'id, part, shelf, leased, attempts, lease_deadline, created_at, expire_at, max_attempts, encoding, kind, reference, source_id, payload'

/** A source id that the partition holds already, on any shelf, makes the row a no-op. */
const KEEP_FIRST = 'ON CONFLICT (part, source_id) WHERE source_id IS NOT NULL DO NOTHING'

const importMany = sql('items.importMany', {
  postgres: `
    INSERT INTO bartleby.items (${COLUMNS})
    SELECT item.id, $1, ${SHELF.queue}, item.leased, item.attempts, item.lease_deadline, $2, item.expire_at, item.max_attempts,
      decode(item.encoding, 'hex'), decode(item.kind, 'hex'), decode(item.reference, 'hex'), decode(item.source_id, 'hex'),
      decode(item.payload, 'hex')
    FROM jsonb_to_recordset($3::jsonb) AS item (
      id bigint, leased smallint, attempts int, lease_deadline bigint, expire_at bigint, max_attempts int,
      encoding text, kind text, reference text, source_id text, payload text)
    ${KEEP_FIRST}
    RETURNING id`,
})

const importOne = sql('items.importOne', {
  sqlite: `INSERT INTO items (${COLUMNS}) VALUES ($1, $2, ${SHELF.queue}, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
           ${KEEP_FIRST}`,
})

/** How many rows one statement carries, to bound the memory of its parameter. */
const CHUNK = 1_000

/** Imports the items; gives the serial of each, null where its source id was held already. */
export async function importItems(
  tx: Transaction,
  part: number,
  now: Instant,
  items: readonly ItemToImport[],
): Promise<(number | null)[]> {
  const serials = await allocateSerials(tx, items.length)
  if (tx.dialect === 'sqlite') {
    const imported: (number | null)[] = []
    for (const [i, item] of items.entries()) {
      const serial = serials[i] ?? 0
      imported.push((await tx.run(importOne, ...rowOf(item, serial, part, now))) === 1 ? serial : null)
    }
    return imported
  }
  const made = new Set<number>()
  for (let from = 0; from < items.length; from += CHUNK) {
    const rows = items.slice(from, from + CHUNK).map((item, i) => ({
      id: serials[from + i],
      leased: item.isLeased ? 1 : 0,
      attempts: item.attempts,
      // As text: JSON numbers would lose the digits beyond 2^53.
      lease_deadline: item.leaseDeadline?.toString() ?? null,
      expire_at: item.expireDeadline.toString(),
      max_attempts: item.maxAttempts,
      encoding: hex(textBytes(item.encoding)),
      kind: hex(textBytes(item.kind)),
      reference: hex(textBytes(item.reference)),
      source_id: hex(textBytes(item.sourceId)),
      payload: item.payload.length === 0 ? null : hex(item.payload),
    }))
    for (const row of await tx.rows<{ id: Integer }>(importMany, part, now, JSON.stringify(rows))) {
      made.add(Number(row.id))
    }
  }
  return serials.map((serial) => (made.has(serial) ? serial : null))
}

const rowOf = (item: ItemToImport, serial: number, part: number, now: Instant): Value[] => [
  serial,
  part,
  item.isLeased ? 1 : 0,
  item.attempts,
  item.leaseDeadline,
  now,
  item.expireDeadline,
  item.maxAttempts,
  textBytes(item.encoding),
  textBytes(item.kind),
  textBytes(item.reference),
  textBytes(item.sourceId),
  item.payload.length === 0 ? null : item.payload,
]

const hex = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')

/** Partitions are few, and imports into dead queues rare. */
const partitionsWith = sql(
  'partitions.withPrefix',
  'SELECT part, id_prefix FROM bartleby.partitions WHERE id_prefix = ANY($1::text[])',
)

/** Items by primary key, of which a letter waits to hear. */
const readSent = sql(
  'items.sentBack',
  `SELECT id FROM bartleby.items WHERE part = $1 AND shelf = ANY($3::int[]) AND id = ANY($2::bigint[])
     AND (SELECT 1 FROM bartleby.letters WHERE letters.id = case_id) IS NOT NULL`,
)

/** Those of `ids` that are ids of items which letters were sent back as. */
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
