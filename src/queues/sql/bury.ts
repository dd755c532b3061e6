/** Death: items leave their place and are filed as letters. The letters module has the other half. */
import { captureAlike, captureStatement } from '../../letters/capture.ts'
import { type Integer, sql } from '../../store/database.ts'
import { micros, seconds } from '../counts.ts'
import type { ContentRow } from './lease.ts'

/** Sums over items that a statement took; `unlike` counts those with a case or never delivered, whose death is not certain. */
export interface Gone
  extends Readonly<Record<'created_s' | 'created_us' | 'deadline_s' | 'deadline_us', Integer>> {
  readonly unlike: Integer
}
const GONE = `, ${seconds('item_created_at')} AS created_s, ${micros('item_created_at')} AS created_us,
  coalesce(${seconds('lease_deadline')}, 0) AS deadline_s, coalesce(${micros('lease_deadline')}, 0) AS deadline_us,
  count(*) FILTER (WHERE case_id IS NOT NULL OR dequeue_count = 0) AS unlike`

/**
 * Deletes items by primary key; the capture files them and returns the sums. `$3` holds per item its note, id, serial in the dead queue's
 * part `$7` (NULL without one) and source id where that differs. An item whose id an imported item of the dead queue has as its source id
 * is skipped, looked for only where something was imported. Letters are numbered here, in item order, which the joins of the capture do not
 * keep. Unread items (`$11`) get new numbers despite their cases; `unlike` reports them, where a taken number would look like a lost race.
 */
export const takeAll = captureStatement(
  'items.bury',
  `gone AS (
     DELETE FROM bartleby.items AS item
     WHERE item.part = $4 AND item.shelf = $5 AND item.id = ANY($2::bigint[]) AND item.leased = $6
     RETURNING $3::jsonb -> item.id::text AS given, item.*
   ), taken AS (
     SELECT coalesce(CASE WHEN NOT $11::boolean THEN case_id END, nextval('bartleby.letter_ids')) AS letter_id, (given ->> 0)::int AS note,
       coalesce(given ->> 3, given ->> 1) AS source_id,
       CASE WHEN (SELECT true FROM bartleby.items WHERE part = $7 AND source_id IS NOT NULL LIMIT 1)
         THEN (SELECT true FROM bartleby.items AS holder
               WHERE holder.part = $7 AND holder.source_id = convert_to(given ->> 1, 'UTF8')) END IS NOT NULL AS skipped,
       created_at AS item_created_at, $8::bigint AS laid_at, (given ->> 2)::bigint AS serial, $7::int AS part,
       attempts AS dequeue_count, $10::int AS partition, $9::text AS dead_queue, encoding, kind, reference,
       NULL::bytea AS headers, payload, lease_deadline, case_id
     FROM (SELECT * FROM gone ORDER BY id) AS gone
   )`,
  GONE,
)

/** Items by primary key; `$6` holds the serial, id and dead-queue serial of each. Skips as above. */
export const fileItems = captureAlike(
  'items.file',
  `SELECT $1 + asked.key AS letter_id, asked.value ->> 1 AS source_id, item.created_at AS item_created_at, $2 AS laid_at,
     asked.value ->> 2 AS serial, $3 AS part, item.attempts AS dequeue_count, $4 AS partition, $5 AS dead_queue, item.encoding, item.kind,
     item.reference, NULL AS headers, item.payload
   FROM json_each($6) AS asked CROSS JOIN items AS item
   WHERE item.id = asked.value ->> 0 AND item.part = $7 AND item.shelf = $8 AND item.leased = $9 AND NOT EXISTS (
     SELECT 1 FROM items AS holder WHERE holder.part = $3 AND holder.source_id = CAST(asked.value ->> 1 AS BLOB))`,
)
const THESE = 'part = $1 AND shelf = $2 AND id = ANY($3) AND leased = $4'
export const sumItems = sql(
  'items.tallyFiled',
  {
    sqlite: `SELECT count(*) AS taken${GONE.replaceAll('item_created_at', 'created_at').replace('dequeue_count', 'attempts')} FROM items WHERE ${THESE}`,
  },
  { bigints: true },
)
export const removeItems = sql('items.removeFiled', { sqlite: `DELETE FROM items WHERE ${THESE}` })

export const takeOne = sql(
  'items.take',
  {
    sqlite: `DELETE FROM items WHERE part = $1 AND shelf = $2 AND id = $3 AND leased = $4
             RETURNING created_at, lease_deadline, case_id, attempts, encoding, kind, reference, payload`,
  },
  { bigints: true },
)
export const readHolder = sql('items.sourceHolder', {
  sqlite: 'SELECT 1 AS found FROM items WHERE part = $1 AND source_id = CAST($2 AS BLOB)',
})

export interface TakenItem extends ContentRow {
  readonly created_at: Integer
  readonly lease_deadline: Integer | null
  readonly case_id: Integer | null
}
