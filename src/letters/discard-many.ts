/**
 * Discard of many letters at once: each becomes what `changeLetter` makes of one, with a history row of its own, in a fixed number
 * of statements.
 */
import { type Integer, integerList, sql } from '../db/database.ts'
import { freeAt, seriesNumber } from '../history/record.ts'
import { type Placed, type RedriveRef, STATUS, sentBy } from './letter.ts'
import type { LetterSource } from './source.ts'
import { said } from './transition.ts'
import type { OfficeWork } from './work.ts'

export interface DiscardOfMany {
  /** The source and the engine of all of them. */
  readonly source: LetterSource
  readonly engine: string
  /** Locked and pending. */
  readonly letters: readonly Placed[]
  readonly notes: string
  readonly actor: string
  readonly redrive: RedriveRef
}

const CORRELATION_ID = 'coalesce(letters.correlation_id, letters.source_id)'

const DISCARDED = `status = ${STATUS.Resolved}, version = version + 1, resolution = 'discard', resolved_at = $2,
  resolved_by = $3, notes = $4, sent_as = NULL, sent_to = NULL, redrive = $5, confirmed_at = NULL`

const RECORD = `created_at, duration_ms, letter_id, series, letter_version, correlation_id, instance_id, actor, notes, output`

/** Letters by primary key, with one look into the history of each correlation id. Rows: one per drawer. */
const discardAll = sql('letters.discardMany', {
  postgres: `
    WITH discarded AS MATERIALIZED (
      UPDATE bartleby.letters SET ${DISCARDED} WHERE id = ANY($1::bigint[]) AND +status = ${STATUS.Pending}
      RETURNING id, drawer, version, ${CORRELATION_ID} AS correlation_id, instance_id
    ), recorded AS (
      INSERT INTO bartleby.history (${RECORD})
      SELECT ${freeAt('discarded.correlation_id', '$2::bigint', 'discarded.id')}
          + row_number() OVER (PARTITION BY discarded.correlation_id ORDER BY discarded.id) - 1,
        0, id, $6, version, correlation_id, instance_id, $3, $4, convert_to($7, 'UTF8')
      FROM discarded
    )
    SELECT drawer, count(*) AS letters FROM discarded GROUP BY drawer`,
  sqlite: `UPDATE letters SET ${DISCARDED} WHERE id IN (SELECT value FROM json_each($1)) AND +status = ${STATUS.Pending}
           RETURNING drawer, 1 AS letters`,
})
const recordOne = sql('letters.recordDiscardOfMany', {
  postgres: '',
  sqlite: `INSERT INTO history (${RECORD})
           SELECT ${freeAt(CORRELATION_ID, '$2', 'letters.id')}, 0, id, $3, version, ${CORRELATION_ID}, instance_id, $4, $5, $6
           FROM letters WHERE id = $1`,
})

/** Discards locked letters, and takes them out of where they lie. */
export async function discardLetters(work: OfficeWork, discard: DiscardOfMany): Promise<void> {
  const { source, engine, letters, redrive } = discard
  if (letters.length === 0) return
  const { tx, now } = work
  await source.lift(work, letters, 'discard')
  const series = await seriesNumber(tx, engine, source.operations?.discard ?? 'discard', 'Succeeded')
  const ids = integerList(
    tx.dialect,
    letters.map(({ id }) => Number(id)),
  )
  const [by, why, output] = [said(discard.actor), said(discard.notes), JSON.stringify(sentBy(redrive))]
  const values = [ids, now, by, why, redrive.number] as const
  const drawers =
    tx.dialect === 'postgres'
      ? await tx.rows<DrawerRow>(discardAll, ...values, series, output)
      : await tx.rows<DrawerRow>(discardAll, ...values)
  if (tx.dialect === 'sqlite') {
    await tx.runEach(
      recordOne,
      letters.map(({ id }) => [id, now, series, by, why, Buffer.from(output)]),
    )
  }
  let discarded = 0
  for (const row of drawers) {
    const [drawer, count] = [Number(row.drawer), Number(row.letters)]
    discarded += count
    work.letters.add(drawer, STATUS.Pending, -count)
    work.letters.add(drawer, STATUS.Resolved, count)
    work.letters.acted('discarded', drawer, count)
  }
  if (discarded !== letters.length) {
    throw new Error(`${letters.length} letters were to be discarded, and ${discarded} of them were pending`)
  }
}

interface DrawerRow {
  readonly drawer: Integer
  readonly letters: Integer
}
