/** What becomes of the rows of dead jobs: they start over, or are gone. Whoever does it has locked their letters before. */
import { type Instant, instant } from '../../core/clock.ts'
import { type Xid, xid } from '../../core/xid.ts'
import { type Integer, sql, type Transaction, textList } from '../../db/database.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { JOB } from '../webhook.ts'

/** A dead job that was moved. */
export interface MovedJob {
  readonly id: Xid
  readonly letter: LetterId
}

/** A dead job that is gone. */
export interface RemovedJob extends MovedJob {
  readonly diedAt: Instant
}

const AMONG = {
  postgres: 'id = ANY($1::text[])',
  sqlite: 'id IN (SELECT value FROM json_each($1))',
} as const

const STARTED_OVER = `state = ${JOB.ready}, attempts = 0, exhausted = 0, changed_at = $2, due_at = NULL, claim = NULL`

/**
 * Dead jobs by primary key, ready for a full new round. Locks them; what is not dead any more is left alone. The plus, here and
 * below, keeps the stores from looking for them among all dead jobs: for 1,000 of 20,000 that took PostgreSQL two seconds.
 */
const startOver = sql(
  'webhooks.startOver',
  {
    postgres: `UPDATE bartleby.webhook_jobs SET ${STARTED_OVER}
               WHERE ${AMONG.postgres} AND +state = ${JOB.dead} RETURNING id, letter`,
    sqlite: `UPDATE webhook_jobs SET ${STARTED_OVER}
             WHERE ${AMONG.sqlite} AND +state = ${JOB.dead} RETURNING id, letter`,
  },
  { bigints: true },
)

/** Dead jobs by primary key, where their attempts were used up at their death or `$2`, the most retries, are. */
const removeExhausted = sql(
  'webhooks.removeExhausted',
  {
    postgres: `DELETE FROM bartleby.webhook_jobs WHERE ${AMONG.postgres} AND +state = ${JOB.dead}
                 AND (exhausted = 1 OR attempts >= $2) RETURNING id, letter, changed_at`,
    sqlite: `DELETE FROM webhook_jobs WHERE ${AMONG.sqlite} AND +state = ${JOB.dead}
               AND (exhausted = 1 OR attempts >= $2) RETURNING id, letter, changed_at`,
  },
  { bigints: true },
)

/** The dead jobs of letters that were given up: letters and jobs by primary key. */
const removeOfLetters = sql('webhooks.removeOfLetters', {
  postgres: `DELETE FROM bartleby.webhook_jobs WHERE +state = ${JOB.dead} AND id = ANY(ARRAY(
               SELECT source_id FROM bartleby.letters WHERE letters.id = ANY($1::bigint[])))`,
  sqlite: `DELETE FROM webhook_jobs WHERE +state = ${JOB.dead} AND id IN (
             SELECT source_id FROM letters WHERE letters.id IN (SELECT value FROM json_each($1)))`,
})

interface Row {
  readonly id: string
  readonly letter: Integer
}

const moved = (row: Row): MovedJob => ({ id: xid(row.id), letter: letterId(row.letter) })

/** Makes dead jobs ready for a new round; gives those that were dead. */
export async function startJobsOver(
  tx: Transaction,
  ids: readonly Xid[],
  now: Instant,
): Promise<readonly MovedJob[]> {
  if (ids.length === 0) return []
  return (await tx.rows<Row>(startOver, textList(tx.dialect, ids), now)).map(moved)
}

/** Removes dead jobs whose attempts are used up; gives those that were there. */
export async function removeExhaustedJobs(
  tx: Transaction,
  ids: readonly Xid[],
  maxRetry: number,
): Promise<readonly RemovedJob[]> {
  if (ids.length === 0) return []
  const list = textList(tx.dialect, ids)
  const rows = await tx.rows<Row & { changed_at: Integer }>(removeExhausted, list, maxRetry)
  return rows.map((row) => ({ ...moved(row), diedAt: instant(BigInt(row.changed_at)) }))
}

/** Removes the dead jobs of these letters (a list of ids as a parameter). */
export async function removeJobsOf(tx: Transaction, letters: string): Promise<void> {
  await tx.run(removeOfLetters, letters)
}
