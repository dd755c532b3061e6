/** Dead jobs that go for good with their letters: one that its consumer deletes, or those of a purge. */
import { type Instant, instant } from '../../core/clock.ts'
import { type Integer, sql } from '../../db/database.ts'
import { type Erasure, eraseLetters } from '../../letters/erase.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { lockLetters } from '../../letters/locked.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { IS_DEAD, WEBHOOKS } from '../webhook.ts'

/** Dead jobs by primary key, where their attempts were used up at their death or `$2`, the most retries, are. */
const removeExhausted = sql(
  'webhooks.removeExhausted',
  `
    DELETE FROM bartleby.webhook_jobs WHERE id = ANY($1::text[]) AND ${IS_DEAD}
      AND (exhausted = 1 OR attempts >= $2) RETURNING letter, changed_at`,
  { bigints: true },
)

/** Erases those of these jobs that are dead and have no attempts left, with their letters; gives how many. */
export async function eraseJobs(
  work: OfficeWork,
  jobs: readonly { readonly id: string; readonly letter: LetterId | null }[],
  maxRetry: number,
  erasure: Omit<Erasure, 'engine' | 'letters' | 'pendingSince'>,
): Promise<number> {
  if (jobs.length === 0) return 0
  const { tx } = work
  const ids = jobs.map(({ id }) => id).sort()
  // Letters before jobs. Statements run in their order: the second need not wait for the answer to the first.
  const [, removed] = await Promise.all([
    lockLetters(
      tx,
      jobs.flatMap(({ letter }) => letter ?? []),
    ),
    tx.rows<{ letter: Integer; changed_at: Integer }>(removeExhausted, ids, maxRetry),
  ])
  const diedAt = removed.map((row) => BigInt(row.changed_at))
  await eraseLetters(work, {
    ...erasure,
    engine: WEBHOOKS,
    letters: removed.map(({ letter }) => letterId(letter)),
    pendingSince: latest(diedAt),
  })
  return removed.length
}

const latest = (times: readonly bigint[]): Instant =>
  instant(times.reduce((newest, at) => (at > newest ? at : newest), 0n))
