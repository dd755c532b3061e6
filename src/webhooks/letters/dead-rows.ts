/** Dead jobs that go for good. Whoever removes them has locked their letters before. */
import { type Instant, instant } from '../../core/clock.ts'
import { type Xid, xid } from '../../core/xid.ts'
import { type Integer, sql, type Transaction, textList } from '../../db/database.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { JOB } from '../webhook.ts'

/** A dead job that is gone. */
export interface RemovedJob {
  readonly id: Xid
  readonly letter: LetterId
  readonly diedAt: Instant
}

const AMONG = {
  postgres: 'id = ANY($1::text[])',
  sqlite: 'id IN (SELECT value FROM json_each($1))',
} as const

/**
 * Dead jobs by primary key, where their attempts were used up at their death or `$2`, the most retries, are. The plus, here and
 * below, keeps the stores from looking for them among all dead jobs.
 */
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

/** Removes dead jobs whose attempts are used up; gives those that were there. */
export async function removeExhaustedJobs(
  tx: Transaction,
  ids: readonly Xid[],
  maxRetry: number,
): Promise<readonly RemovedJob[]> {
  if (ids.length === 0) return []
  const list = textList(tx.dialect, ids)
  const rows = await tx.rows<{ id: string; letter: Integer; changed_at: Integer }>(
    removeExhausted,
    list,
    maxRetry,
  )
  return rows.map(({ id, letter, changed_at }) => ({
    id: xid(id),
    letter: letterId(letter),
    diedAt: instant(BigInt(changed_at)),
  }))
}

/** Removes the dead jobs of these letters (a list of ids as a parameter). */
export async function removeJobsOf(tx: Transaction, letters: string): Promise<void> {
  await tx.run(removeOfLetters, letters)
}
