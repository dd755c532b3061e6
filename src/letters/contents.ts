/** Contents of many letters, for repairs and their results. */

import { storedPayload, storedText } from '../core/content.ts'
import { type Integer, type Session, sql, type Transaction } from '../store/database.ts'
import { runGiven } from '../store/idioms.ts'
import { type RowOf, rowShape } from '../store/row.ts'
import { type HeaderEdit, type LetterId, letterId } from './letter.ts'

const SENDABLE = rowShape({
  id: letterId,
  encoding: storedText,
  kind: storedText,
  reference: storedText,
  payload: storedPayload,
})

export const SENDABLE_PAYLOAD = 'CASE WHEN edited = 1 THEN edited_payload ELSE payload END'

/** By primary key. */
const readThese = sql(
  'letters.contents',
  `SELECT id, coalesce(edited_encoding, encoding) AS encoding, coalesce(edited_kind, kind) AS kind,
     coalesce(edited_reference, reference) AS reference, ${SENDABLE_PAYLOAD} AS payload
   FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
)

export async function readContents(
  session: Session,
  ids: readonly LetterId[],
): Promise<Map<LetterId, RowOf<typeof SENDABLE>>> {
  const contents = await SENDABLE.all(session, readThese, ids)
  return new Map(contents.map((content) => [content.id, content]))
}

/** SQL for the digest of a payload; NULL counts as empty. */
export const digestIn = (payload: string): string => `sha256(coalesce(${payload}, ''))`

/** By primary key; neither store reads the payload for its length. */
const measureThese = sql(
  'letters.contentBytes',
  `SELECT id, CASE WHEN edited = 1 THEN octet_length(edited_payload) ELSE octet_length(payload) END AS bytes
   FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
)

/** Payloads in memory at once; a larger one comes alone. */
const PORTION_BYTES = 8_388_608

/** Splits ids, in order, into portions whose contents fit into memory. */
export async function contentPortions(
  session: Session,
  ids: readonly LetterId[],
): Promise<readonly (readonly LetterId[])[]> {
  const rows = await session.rows<{ id: Integer; bytes: Integer | null }>(measureThese, ids)
  const sizes = new Map(rows.map(({ id, bytes }) => [letterId(id), Number(bytes)]))
  const portions: LetterId[][] = []
  let room = 0
  for (const id of ids) {
    const bytes = sizes.get(id) ?? 0
    const portion = portions.at(-1)
    if (portion !== undefined && bytes <= room) portion.push(id)
    else {
      portions.push([id])
      room = PORTION_BYTES
    }
    room -= bytes
  }
  return portions
}

export interface KeptEdit {
  readonly id: LetterId
  /** null: unchanged. */
  readonly payload: Uint8Array | null
  readonly headers: HeaderEdit
}

/** Locked letters, by primary key. */
const keepMany = sql(
  'letters.keepEdits',
  `UPDATE bartleby.letters SET edited = CASE WHEN given.payload IS NULL THEN letters.edited ELSE 1 END,
     edited_payload = coalesce(given.payload, letters.edited_payload), edited_encoding = coalesce(given.encoding, letters.edited_encoding),
     edited_kind = coalesce(given.kind, letters.edited_kind), edited_reference = coalesce(given.reference, letters.edited_reference)
   FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[]) AS given (id, payload, encoding, kind, reference)
   WHERE letters.id = given.id`,
)

export async function keepEdits(tx: Transaction, edits: readonly KeptEdit[]): Promise<void> {
  const bytes = (text: string | undefined) => (text === undefined ? null : Buffer.from(text))
  const rows = edits.map(({ id, payload, headers: { encoding, kind, reference } }) => ({
    ...{ id, payload, encoding: bytes(encoding), kind: bytes(kind), reference: bytes(reference) },
  }))
  await runGiven(tx, keepMany, rows)
}

/** By primary key. */
const replaceOne = sql(
  'letters.replaceEdit',
  'UPDATE bartleby.letters SET edited = $2, edited_payload = $3 WHERE id = $1',
)

/** Replaces the edit of a locked letter; null removes it. */
export async function replaceEdit(tx: Transaction, id: LetterId, edited: Uint8Array | null): Promise<void> {
  await tx.run(replaceOne, id, edited === null ? 0 : 1, edited)
}

const RENEWED = ['correlation_id', 'partition', 'kind', 'reference', 'headers', 'payload'] as const

/**
 * End of a PostgreSQL statement that gives letters the content of another message, and drops their edits. `given` has a row per
 * `letter_id`; `ids` finds them by primary key.
 */
export const renewingContents = (given: string, ids: string): string =>
  `UPDATE bartleby.letters AS letter SET ${RENEWED.map((column) => `${column} = ${given}.${column}`).join(', ')},
     edited = 0, edited_payload = NULL
   FROM ${given} WHERE letter.id = ${given}.letter_id AND letter.id = ANY(${ids}::bigint[])`

/** SQLite: one letter; its number, then the contents in this order. */
export const renewContents = sql('letters.renewContents', {
  sqlite: `UPDATE letters SET ${RENEWED.map((column, i) => `${column} = $${i + 2}`).join(', ')}, edited = 0, edited_payload = NULL
           WHERE id = $1`,
})
