/**
 * Which letter belongs to which row: the one with the outbox's name and the row's id. Where an emptied table counts its
 * ids anew, the key tells messages apart, and is part of the name of the later letter.
 */

import { storedText } from '../../../core/content.ts'
import { digestIn, SENDABLE_PAYLOAD } from '../../../letters/contents.ts'
import { type LetterId, letterId } from '../../../letters/letter.ts'
import { type Session, type Statement, sql, type Transaction } from '../../../store/database.ts'
import { rowShape, text } from '../../../store/row.ts'
import type { OutboxRow, RowOfLetter } from '../sql/letters.ts'

export const OUTBOX = 'outbox'

const sourceIdOf = (outbox: string, rowId: string): string => `${outbox}/${rowId}`
const sourceIdWithKey = (outbox: string, { id, key }: OutboxRow): string => `${outbox}/${id}/${key}`

/** The row that a letter came from, its outbox, and the digest of what would be sent where that was asked for. */
export interface LetterRow extends RowOfLetter {
  readonly outbox: string
  readonly digest: string
}

const SOURCE = rowShape({
  id: letterId,
  sourceId: text,
  /** The key of the message. */
  reference: storedText,
  digest: (value: Uint8Array | null) => (value === null ? '' : Buffer.from(value).toString('hex')),
  queue: (value: string | null) => value ?? '',
})

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

export async function rowsOf(
  session: Session,
  letters: readonly { readonly id: LetterId }[],
  { digests = false } = {},
): Promise<LetterRow[]> {
  const ids = letters.map(({ id }) => id)
  const sources = await SOURCE.all(session, digests ? readDeparting : readSources, ids)
  return sources.map(({ id: letterId, sourceId, reference: key, digest, queue: outbox }) => {
    const id = sourceId.slice(outbox.length + 1)
    const rowId = id.endsWith(`/${key}`) ? id.slice(0, -key.length - 1) : id
    return { outbox, letterId, id: rowId, key, digest }
  })
}

const NAMED = rowShape({ id: letterId, sourceId: text, reference: storedText })

/** One look into letters_by_source each. */
const readLetters = sql(
  'outbox.lettersOfRows',
  `SELECT ${NAMED.columns} FROM bartleby.letters WHERE engine = '${OUTBOX}' AND source_id = ANY($1::text[])`,
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
    return letter !== undefined && letter.reference !== key
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

async function bySource(tx: Transaction, sourceIds: readonly string[]) {
  const letters = sourceIds.length === 0 ? [] : await NAMED.all(tx, readLetters, sourceIds)
  return new Map(letters.map((letter) => [letter.sourceId, letter]))
}
