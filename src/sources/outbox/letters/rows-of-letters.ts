/**
 * Which letter belongs to which row: the one with the outbox's name and the row's id. Where an emptied table counts its
 * ids anew, the key tells messages apart, and is part of the name of the later letter.
 */

import { storedText } from '../../../core/content.ts'
import { digestIn, SENDABLE_PAYLOAD } from '../../../letters/contents.ts'
import { type LetterId, letterId } from '../../../letters/letter.ts'
import { type Integer, type Session, type Statement, sql, type Transaction } from '../../../store/database.ts'
import type { OutboxRow, RowOfLetter, RowToSend } from '../sql/letters.ts'

export const OUTBOX = 'outbox'

const sourceIdOf = (outbox: string, rowId: string): string => `${outbox}/${rowId}`
const sourceIdWithKey = (outbox: string, { id, key }: OutboxRow): string => `${outbox}/${id}/${key}`

export interface OutboxAndRow extends RowOfLetter {
  readonly outbox: string
}

export interface DepartingRow extends OutboxAndRow, RowToSend {}

/** By primary key; the queue of a letter's drawer is the name of its outbox. */
const sourcesOf = (name: string, digest: string): Statement =>
  sql(
    name,
    `SELECT id, source_id, reference, ${digest} AS digest, (SELECT queue FROM bartleby.drawers WHERE drawers.id = drawer) AS queue
     FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
    { bigints: true },
  )
const readSources = sourcesOf('outbox.sourcesOfLetters', 'NULL')
/** Reads the payloads too. */
const readDeparting = sourcesOf('outbox.departingLetters', digestIn(SENDABLE_PAYLOAD))

type Letters = readonly { readonly id: LetterId }[]

export const rowsOf = (session: Session, letters: Letters): Promise<OutboxAndRow[]> =>
  readRows(session, readSources, letters)

export const departingRowsOf = (session: Session, letters: Letters): Promise<DepartingRow[]> =>
  readRows(session, readDeparting, letters)

async function readRows(session: Session, statement: Statement, letters: Letters): Promise<DepartingRow[]> {
  const rows = await session.rows<{
    readonly id: Integer
    readonly source_id: string
    readonly reference: Uint8Array | null
    readonly digest: Uint8Array | null
    readonly queue: string | null
  }>(
    statement,
    letters.map(({ id }) => id),
  )
  return rows.map(({ id: letter, source_id, reference, digest, queue }) => {
    const outbox = queue ?? ''
    const key = storedText(reference)
    const id = source_id.slice(outbox.length + 1)
    const rowId = id.endsWith(`/${key}`) ? id.slice(0, -key.length - 1) : id
    const hex = digest === null ? '' : Buffer.from(digest).toString('hex')
    return { outbox, letterId: letterId(letter), id: rowId, key, digest: hex }
  })
}

/** One look into letters_by_source each. */
const readLetters = sql(
  'outbox.lettersOfRows',
  `SELECT id, source_id, reference FROM bartleby.letters WHERE engine = '${OUTBOX}' AND source_id = ANY($1::text[])`,
  { bigints: true },
)

export interface RowAndLetter {
  readonly row: OutboxRow
  /** Null: it would be captured under the source id. */
  readonly letterId: LetterId | null
  readonly sourceId: string
}

/** In the order of the rows. */
export async function lettersOf(
  tx: Transaction,
  outbox: string,
  rows: readonly OutboxRow[],
): Promise<RowAndLetter[]> {
  const letters = await bySource(
    tx,
    rows.map(({ id }) => sourceIdOf(outbox, id)),
  )
  const others = rows.filter(({ id, key }) => {
    const letter = letters.get(sourceIdOf(outbox, id))
    return letter !== undefined && letter.key !== key
  })
  const withKey = await bySource(
    tx,
    others.map((row) => sourceIdWithKey(outbox, row)),
  )
  return rows.map((row) => {
    const sourceId = others.includes(row) ? sourceIdWithKey(outbox, row) : sourceIdOf(outbox, row.id)
    const letter = letters.get(sourceId) ?? withKey.get(sourceId)
    return { row, sourceId, letterId: letter?.id ?? null }
  })
}

async function bySource(
  tx: Transaction,
  sourceIds: readonly string[],
): Promise<Map<string, { readonly id: LetterId; readonly key: string }>> {
  if (sourceIds.length === 0) return new Map()
  const rows = await tx.rows<{ id: Integer; source_id: string; reference: Uint8Array | null }>(
    readLetters,
    sourceIds,
  )
  return new Map(rows.map((row) => [row.source_id, { id: letterId(row.id), key: storedText(row.reference) }]))
}
