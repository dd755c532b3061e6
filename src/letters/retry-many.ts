/**
 * Retry of many letters at once, for whoever has sent their messages back in the same transaction: each becomes what `retryLetter`
 * makes of one, with a history row of its own, in a fixed number of statements.
 */
import type { Instant } from '../core/clock.ts'
import { type Integer, integerList, sql, type Transaction } from '../db/database.ts'
import { freeAt } from '../history/record.ts'
import { seriesNumber } from '../history/series.ts'
import { type LetterId, type SendReceipt, STATUS } from './letter.ts'
import { said } from './transition.ts'
import type { OfficeWork } from './work.ts'

/** A letter whose message is on its way again. */
export interface SentLetter {
  readonly id: LetterId
  readonly receipt: SendReceipt
}

export interface RetryOfMany {
  /** The engine of all of them. */
  readonly engine: string
  /** Locked, pending, and in no dead queue. */
  readonly sent: readonly SentLetter[]
  readonly notes: string
  readonly actor: string
}

const CORRELATION_ID = 'coalesce(letters.correlation_id, letters.source_id)'

const RECORD = `created_at, duration_ms, letter_id, series, letter_version, correlation_id, instance_id, actor, notes, output`

/** What is given for a letter: `$2` has a list for each id. */
const given = (place: number): string => `($2::jsonb -> letters.id::text ->> ${place})`

/**
 * Rewrites letters by primary key, and looks once into the history of each correlation id. No join with what is given: PostgreSQL
 * does not know how much that is, and goes through all of it for every letter, which takes seconds for 1,000. Rows: one per drawer.
 */
const retryAll = sql('letters.retryMany', {
  postgres: `
    WITH retried AS MATERIALIZED (
      UPDATE bartleby.letters SET status = ${STATUS.Resolved}, version = version + 1, resolution = 'retry',
        resolved_at = $3, resolved_by = $4, notes = $5, sent_as = ${given(0)}, sent_to = ${given(1)}, confirmed_at = NULL
      WHERE id = ANY($1::bigint[]) AND +status = ${STATUS.Pending}
      RETURNING id, drawer, version, ${CORRELATION_ID} AS correlation_id, instance_id, ${given(2)} AS output
    ), recorded AS (
      INSERT INTO bartleby.history (${RECORD})
      SELECT ${freeAt('retried.correlation_id', '$3::bigint', 'retried.id')}
          + row_number() OVER (PARTITION BY retried.correlation_id ORDER BY retried.id) - 1,
        0, id, $6, version, correlation_id, instance_id, $4, $5, convert_to(output, 'UTF8')
      FROM retried
    )
    SELECT drawer, count(*) AS letters FROM retried GROUP BY drawer`,
  sqlite: '',
})

/** Where pending letters lie, by primary key: one row for each. */
const readDrawers = sql('letters.pendingDrawers', {
  postgres: '',
  sqlite: `SELECT drawer, 1 AS letters FROM letters
           WHERE id IN (SELECT value FROM json_each($1)) AND +status = ${STATUS.Pending}`,
})
const retryOne = sql('letters.retryOneOfMany', {
  postgres: '',
  sqlite: `UPDATE letters SET status = ${STATUS.Resolved}, version = version + 1, resolution = 'retry', sent_as = $2,
             sent_to = $3, resolved_at = $4, resolved_by = $5, notes = $6, confirmed_at = NULL WHERE id = $1`,
})
const recordOne = sql('letters.recordRetryOfMany', {
  postgres: '',
  sqlite: `INSERT INTO history (${RECORD})
           SELECT ${freeAt(CORRELATION_ID, '$2', 'letters.id')}, 0, id, $3, version, ${CORRELATION_ID}, instance_id, $4, $5, $6
           FROM letters WHERE id = $1`,
})

interface DrawerRow {
  readonly drawer: Integer
  readonly letters: Integer
}

/** Resolves letters whose messages were sent back. */
export async function retryLetters(work: OfficeWork, retry: RetryOfMany): Promise<void> {
  const { sent } = retry
  if (sent.length === 0) return
  const series = await seriesNumber(work.tx, retry.engine, 'retry', 'Succeeded')
  const resolve = work.tx.dialect === 'postgres' ? resolveAll : resolveEach
  const drawers = await resolve(work.tx, work.now, series, retry)
  let retried = 0
  for (const row of drawers) {
    const letters = Number(row.letters)
    retried += letters
    work.letters.retried(Number(row.drawer), letters)
  }
  if (retried !== sent.length) {
    throw new Error(`${sent.length} letters were sent back, and ${retried} of them were pending`)
  }
}

function resolveAll(
  tx: Transaction,
  now: Instant,
  series: number,
  { sent, actor, notes }: RetryOfMany,
): Promise<DrawerRow[]> {
  const given = sent.map(({ id, receipt }) => [
    id.toString(),
    [receipt.messageId, receipt.queue, JSON.stringify(receipt)],
  ])
  return tx.rows<DrawerRow>(
    retryAll,
    listOf(tx, sent),
    JSON.stringify(Object.fromEntries(given)),
    now,
    said(actor),
    said(notes),
    series,
  )
}

async function resolveEach(
  tx: Transaction,
  now: Instant,
  series: number,
  { sent, actor, notes }: RetryOfMany,
): Promise<DrawerRow[]> {
  const drawers = await tx.rows<DrawerRow>(readDrawers, listOf(tx, sent))
  const [by, why] = [said(actor), said(notes)]
  await tx.runEach(
    retryOne,
    sent.map(({ id, receipt }) => [id, receipt.messageId, receipt.queue, now, by, why]),
  )
  await tx.runEach(
    recordOne,
    sent.map(({ id, receipt }) => [id, now, series, by, why, Buffer.from(JSON.stringify(receipt))]),
  )
  return drawers
}

const listOf = (tx: Transaction, sent: readonly SentLetter[]): string =>
  integerList(
    tx.dialect,
    sent.map(({ id }) => Number(id)),
  )
