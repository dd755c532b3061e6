/**
 * Retry of many letters at once, for whoever has sent their messages back in the same transaction: each is Resolved until its
 * item completes (confirmed) or dies (reopened), with a history row of its own, in a fixed number of statements.
 */
import type { Instant } from '../core/clock.ts'
import { type Integer, integerList, sql, type Transaction, textList } from '../db/database.ts'
import { freeAt, freeBeside, seriesNumber } from '../history/record.ts'
import { type LetterId, type RedriveRef, STATUS, sentBy } from './letter.ts'
import { NO_PLACE } from './lying/place.ts'
import { said } from './transition.ts'
import type { OfficeWork } from './work.ts'

/** A letter whose message is on its way again. */
export interface SentLetter {
  readonly id: LetterId
  readonly messageId: string
  /** What history says of it besides; left out: nothing. */
  readonly more?: Readonly<Record<string, string | number>> | undefined
}

export interface RetryOfMany {
  /** The engine of all of them. */
  readonly engine: string
  /** Where all of them went. */
  readonly queue: string
  /** Locked and pending; no dead queue counts them any more. */
  readonly sent: readonly SentLetter[]
  readonly notes: string
  readonly actor: string
  /** Left out: no redrive did. */
  readonly redrive?: RedriveRef | undefined
  /** Whether payloads were edited for it, which history has as their input then. Left out: none was. */
  readonly isEdited?: boolean
}

const CORRELATION_ID = 'coalesce(letters.correlation_id, letters.source_id)'

const RECORD = `created_at, duration_ms, letter_id, series, letter_version, correlation_id, instance_id, actor, notes, input, output`

/** What a letter becomes; the parameters are those of `retryAll`. */
const RETRIED = `status = ${STATUS.Resolved}, version = version + 1, resolution = 'retry', resolved_at = $3,
  resolved_by = $4, notes = $5, redrive = $6, sent_to = $7, confirmed_at = NULL, ${NO_PLACE}`

/** What history has of an edit: what a recipe made of the payload, where there is one. */
const inputIf = (isRepaired: string): string =>
  `CASE WHEN ${isRepaired} = 1 AND edited = 1 THEN edited_payload END`

/** Which of the letters given this is; they are in the order of their numbers. */
const PLACE = 'width_bucket(id, $1::bigint[])'
const MESSAGE = `convert_from(substring($2::bytea FROM (${PLACE} - 1) * $8::int + 1 FOR $8::int), 'UTF8')`

/**
 * Rewrites letters by primary key, and looks once into the history of each correlation id. What goes with each letter is found by
 * its place in the list of ids, the ids of messages ($2) by cutting them out: a join with what is given would go through all of it
 * for every letter, which takes half a second for 1,000. `$11` and `$12` are the rest of what history says, of all or of each.
 * Rows: one per drawer.
 */
const retryAll = sql('letters.retryMany', {
  postgres: `
    WITH retried AS MATERIALIZED (
      UPDATE bartleby.letters SET ${RETRIED}, sent_as = ${MESSAGE}
      WHERE id = ANY($1::bigint[]) AND +status = ${STATUS.Pending}
      RETURNING id, drawer, version, ${CORRELATION_ID} AS correlation_id, instance_id, sent_as, ${inputIf('$10::int')} AS input,
        CASE WHEN correlation_id IS NULL THEN captured_at END AS plain_at
    ), recorded AS (
      INSERT INTO bartleby.history (${RECORD})
      SELECT ${freeBeside('retried.correlation_id', '$3::bigint', 'retried.plain_at')}
          + row_number() OVER (PARTITION BY retried.correlation_id ORDER BY retried.id) - 1,
        0, id, $9, version, correlation_id, instance_id, $4, $5, input,
        convert_to('{"messageId":"' || sent_as || coalesce(($12::text[])[${PLACE}], $11), 'UTF8')
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
  sqlite: `UPDATE letters SET ${RETRIED}, sent_as = $2 WHERE id = $1`,
})
const recordOne = sql('letters.recordRetryOfMany', {
  postgres: '',
  sqlite: `INSERT INTO history (${RECORD})
           SELECT ${freeAt(CORRELATION_ID, '$2', 'letters.id')}, 0, id, $3, version, ${CORRELATION_ID}, instance_id, $4, $5,
             ${inputIf('$7')}, $6
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

/** The rest of the JSON that says where a letter went, behind the id of its message. */
const tailOf = ({ queue, redrive }: RetryOfMany, more: SentLetter['more'] = {}): string =>
  `",${JSON.stringify({ queue, ...more, ...sentBy(redrive) }).slice(1)}`

const isRepaired = ({ redrive, isEdited }: RetryOfMany): number =>
  isEdited === true || redrive?.recipe != null ? 1 : 0

/** One statement for each length of the messages' ids: most sources have one. */
async function resolveAll(
  tx: Transaction,
  now: Instant,
  series: number,
  retry: RetryOfMany,
): Promise<DrawerRow[]> {
  const drawers: DrawerRow[] = []
  for (const [width, sent] of Map.groupBy(retry.sent, ({ messageId }) => Buffer.byteLength(messageId)))
    drawers.push(...(await resolveSome(tx, now, series, { ...retry, sent }, width)))
  return drawers
}

function resolveSome(
  tx: Transaction,
  now: Instant,
  series: number,
  retry: RetryOfMany,
  width: number,
): Promise<DrawerRow[]> {
  const { actor, notes, queue, redrive } = retry
  const sent = retry.sent.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  const tails = sent.some(({ more }) => more !== undefined) ? sent.map(({ more }) => tailOf(retry, more)) : []
  return tx.rows<DrawerRow>(
    retryAll,
    listOf(tx, sent),
    Buffer.from(sent.map(({ messageId }) => messageId).join('')),
    now,
    said(actor),
    said(notes),
    redrive?.number ?? null,
    queue,
    width,
    series,
    isRepaired(retry),
    tailOf(retry),
    textList(tx.dialect, tails),
  )
}

async function resolveEach(
  tx: Transaction,
  now: Instant,
  series: number,
  retry: RetryOfMany,
): Promise<DrawerRow[]> {
  const { sent, actor, notes, queue, redrive } = retry
  const drawers = await tx.rows<DrawerRow>(readDrawers, listOf(tx, sent))
  const [by, why, number, repaired] = [said(actor), said(notes), redrive?.number ?? null, isRepaired(retry)]
  await tx.runEach(
    retryOne,
    sent.map(({ id, messageId }) => [id, messageId, now, by, why, number, queue]),
  )
  await tx.runEach(
    recordOne,
    sent.map(({ id, messageId, more }) => {
      const output = Buffer.from(`{"messageId":"${messageId}${tailOf(retry, more)}`)
      return [id, now, series, by, why, output, repaired]
    }),
  )
  return drawers
}

const listOf = (tx: Transaction, sent: readonly SentLetter[]): string =>
  integerList(
    tx.dialect,
    sent.map(({ id }) => Number(id)),
  )
