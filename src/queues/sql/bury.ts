/** How items become letters: out of their queue and into the table of letters, in one step. */
import { instant } from '../../core/clock.ts'
import { KSUID_LENGTH } from '../../core/ksuid.ts'
import { type Integer, integerList, sql } from '../../db/database.ts'
import {
  type CapturedRow,
  capture,
  captureStatement,
  countCaptured,
  noteList,
} from '../../letters/capture.ts'
import type { DeathNote } from '../../letters/death-note.ts'
import { letterId } from '../../letters/letter.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { insistOn } from '../cycle.ts'
import { asRead, deadlineList, inOrder, type Moving, type Origin, placeIn, serialList } from './move.ts'

/**
 * Deletes the items by primary key; the capture files them. `$7` are their serials in the dead queue's part `$10`,
 * which is NULL when there is no dead queue. A source id that an imported item of the dead queue has is skipped; it is
 * looked for as a range, in the order of items_by_source, so that PostgreSQL does not read all items of the part. Letters
 * are numbered here, in the order of the items, which the joins of the capture do not keep.
 */
const buryMany = captureStatement(
  'items.bury',
  `gone AS (
     DELETE FROM bartleby.items AS item
     WHERE item.part = $2 AND item.shelf = $3 AND ${asRead('$4', '$5', '$6')}
     RETURNING ${placeIn('$4')} AS place, coalesce(item.case_id, nextval('bartleby.letter_ids')) AS letter_id,
       item.created_at, item.attempts, item.encoding, item.kind, item.reference, item.payload
   ), named AS MATERIALIZED (
     SELECT *, substring($8::bytea FROM (place - 1) * ${KSUID_LENGTH} + 1 FOR ${KSUID_LENGTH}) AS item_id FROM gone
   ), taken AS (
     SELECT letter_id, ($9::int[])[place] AS note, $14::text || encode(item_id, 'escape') AS source_id,
       (SELECT true FROM bartleby.items AS holder WHERE holder.part = $10
          AND holder.source_id >= item_id AND holder.source_id <= item_id
          ORDER BY holder.source_id LIMIT 1) IS NOT NULL AS skipped,
       created_at AS item_created_at, $11::bigint AS laid_at, ($7::bigint[])[place] AS serial, $10::int AS part,
       attempts AS dequeue_count, $13::int AS partition, $12::text AS dead_queue, encoding, kind, reference,
       NULL::bytea AS headers, payload
     FROM named
   )`,
)

const takeOne = sql(
  'items.take',
  {
    postgres: '',
    sqlite: `DELETE FROM items WHERE part = $1 AND shelf = $2 AND id = $3 AND leased = $4
             RETURNING case_id, created_at, attempts, encoding, kind, reference, payload`,
  },
  { bigints: true },
)
const readHolder = sql('items.sourceHolder', {
  postgres: '',
  sqlite: 'SELECT 1 AS found FROM items WHERE part = $1 AND source_id = CAST($2 AS BLOB)',
})

export interface Burial {
  /** Of the source ids, which are the items' ids otherwise. */
  readonly prefix: string
  readonly from: Origin & { readonly partition: number }
  /** Where the letters shall lie; null when the queue has no dead queue. */
  readonly grave: { readonly part: number; readonly deadQueue: string } | null
  readonly notes: readonly DeathNote[]
  readonly items: readonly (Moving & {
    /** The id that it dies with. */
    readonly itemId: string
    /** Its place in `notes`. */
    readonly note: number
    /** Its serial in the dead queue; null without one. */
    readonly to: number | null
  })[]
}

/** Moves items to their letters; gives how many letters are new. */
export async function buryItems(work: OfficeWork, burial: Burial): Promise<number> {
  const { tx, now } = work
  const { from, prefix, grave, notes, items } = burial
  if (tx.dialect === 'sqlite') return buryEach(work, burial)
  const ordered = inOrder(items)
  const rows = await tx.rows<CapturedRow>(
    buryMany,
    noteList(notes),
    from.part,
    from.shelf,
    serialList(ordered),
    from.leased ? 1 : 0,
    deadlineList(ordered),
    integerList(
      tx.dialect,
      ordered.flatMap(({ to }) => to ?? []),
    ),
    Buffer.from(ordered.map(({ itemId }) => itemId).join(''), 'latin1'),
    integerList(
      tx.dialect,
      ordered.map(({ note }) => note + 1),
    ),
    grave?.part ?? null,
    grave === null ? null : now,
    grave?.deadQueue ?? null,
    from.partition,
    prefix,
  )
  const { taken, skipped, captured } = countCaptured(work, notes, rows)
  insistOn(items.length, taken)
  if (captured + skipped < taken) throw swallowed(taken - skipped - captured)
  return captured
}

/** No letter but the item's own may have its source id; the transaction that would lose the item is not committed. */
const swallowed = (items: number): Error =>
  new Error(`${items} dying items found their source ids taken by letters that are not theirs; they stay`)

async function buryEach(work: OfficeWork, { from, prefix, grave, notes, items }: Burial): Promise<number> {
  const { tx, now } = work
  let captured = 0
  for (const { serial, itemId, note: place, to } of items) {
    const [item] = await tx.rows<TakenItem>(takeOne, from.part, from.shelf, serial, from.leased ? 1 : 0)
    const note = notes[place]
    if (item === undefined || note === undefined) throw new Error(`item ${itemId} is not there to be buried`)
    const held = grave !== null && (await tx.rows(readHolder, grave.part, itemId)).length > 0
    if (held) continue
    const id = await capture(work, note, {
      caseId: item.case_id === null ? null : letterId(item.case_id),
      sourceId: prefix + itemId,
      itemCreatedAt: instant(BigInt(item.created_at)),
      dequeueCount: Number(item.attempts),
      partition: from.partition,
      grave: grave === null || to === null ? null : { ...grave, serial: to, laidAt: now },
      encoding: item.encoding,
      kind: item.kind,
      reference: item.reference,
      headers: null,
      payload: item.payload,
    })
    if (id === null) throw swallowed(1)
    captured++
  }
  return captured
}

interface TakenItem {
  readonly case_id: Integer | null
  readonly created_at: Integer
  readonly attempts: Integer
  readonly encoding: Uint8Array | null
  readonly kind: Uint8Array | null
  readonly reference: Uint8Array | null
  readonly payload: Uint8Array | null
}
