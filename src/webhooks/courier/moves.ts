/**
 * Where jobs in flight go: to what comes next for them, as far as their claims still hold. One statement moves a whole batch, with its
 * counts; a job whose claim is not the given one any more stays as it is.
 */
import type { Instant } from '../../core/clock.ts'
import { type Xid, xid } from '../../core/xid.ts'
import { type Integer, sql, textList } from '../../db/database.ts'
import { allocateLetterIds } from '../../letters/capture.ts'
import { type CaseFailure, fileCaseFailures } from '../../letters/confirm.ts'
import type { LetterId } from '../../letters/letter.ts'
import type { OfficeWork } from '../../letters/work.ts'
import type { Tallies } from '../tallies.ts'
import { JOB } from '../webhook.ts'

/** A job in flight and the state that it goes to. */
export interface Move {
  readonly id: Xid
  readonly claim: string
  readonly to: typeof JOB.later | typeof JOB.ready | typeof JOB.delivered
  /** Failed attempts that are added. */
  readonly failures: 0 | 1
  /** When a job that goes to `later` becomes ready. */
  readonly dueAt: Instant | null
  readonly letter: LetterId | null
}

const change = (claim: string, given: (place: number, type: string) => string) => `
  state = ${given(1, 'smallint')}, attempts = attempts + ${given(2, 'int')}, due_at = ${given(3, 'bigint')}, letter = ${given(4, 'bigint')},
  claim = NULL, changed_at = $3
  WHERE ${claim}
  RETURNING id, consumer`

/**
 * Jobs by primary key, in the order of their ids. The plus keeps the stores from looking for them among all jobs in flight,
 * which they do as long as they do not know how many there are. Cost: the jobs of the batch.
 */
const moveMany = sql('webhooks.move', {
  postgres: `UPDATE bartleby.webhook_jobs SET ${change(
    `id = ANY($1::text[]) AND +state = ${JOB.inFlight} AND claim = $2::jsonb -> id ->> 0`,
    (place, type) => `($2::jsonb -> id ->> ${place})::${type}`,
  )}`,
  sqlite: `UPDATE webhook_jobs SET ${change(
    `id IN (SELECT value FROM json_each($1)) AND +state = ${JOB.inFlight} AND claim = $2 -> id ->> 0`,
    (place) => `CAST($2 -> id ->> ${place} AS INTEGER)`,
  )}`,
})

/** Moves jobs whose claims still hold; gives those that it moved. */
export async function moveJobs(
  work: OfficeWork,
  tallies: Tallies,
  moves: readonly Move[],
): Promise<ReadonlySet<Xid>> {
  if (moves.length === 0) return new Set()
  const { tx, now } = work
  const byId = new Map(moves.map((move) => [move.id, move]))
  const ids = [...byId.keys()].sort()
  const given = Object.fromEntries(
    // As text: JSON numbers would lose the digits beyond 2^53.
    moves.map(({ id, claim, to, failures, dueAt, letter }) => [
      id,
      [claim, to, failures, dueAt?.toString() ?? null, letter?.toString() ?? null],
    ]),
  )
  const list = textList(tx.dialect, ids)
  const rows = await tx.rows<{ id: string; consumer: Integer }>(moveMany, list, JSON.stringify(given), now)
  const moved = new Set<Xid>()
  for (const row of rows) {
    const move = byId.get(xid(row.id))
    if (move === undefined) continue
    moved.add(move.id)
    tallies.moved(Number(row.consumer), JOB.inFlight, move.to)
  }
  return moved
}

/** A job in flight whose attempt failed, and that lives on. */
export interface FailedJob {
  readonly id: Xid
  readonly claim: string
  readonly to: typeof JOB.later | typeof JOB.ready
  readonly dueAt: Instant | null
  /** Its case; null when this is its first failure. */
  readonly letter: LetterId | null
  readonly failure: Omit<CaseFailure, 'caseId' | 'errorStack'>
}

/** Gives the jobs that have no case yet one. */
export async function withCases(
  { tx }: OfficeWork,
  failed: readonly FailedJob[],
): Promise<readonly (FailedJob & { readonly letter: LetterId })[]> {
  const fresh = await allocateLetterIds(tx, failed.filter(({ letter }) => letter === null).length)
  const next = fresh.values()
  return failed.map((job) => {
    const letter = job.letter ?? next.next().value
    if (letter === undefined) throw new Error(`there is no number for the case of job ${job.id}`)
    return { ...job, letter }
  })
}

/** The moves of failed jobs. */
export const moveOf = ({ id, claim, to, dueAt, letter }: FailedJob): Move => ({
  id,
  claim,
  to,
  failures: 1,
  dueAt,
  letter,
})

/** Files the failures of those jobs that were moved, each under its case. */
export async function fileFailures(
  work: OfficeWork,
  failed: readonly (FailedJob & { readonly letter: LetterId })[],
  moved: ReadonlySet<Xid>,
): Promise<void> {
  await fileCaseFailures(
    work,
    failed
      .filter(({ id }) => moved.has(id))
      .map(({ letter, failure }) => ({ ...failure, caseId: letter, errorStack: null })),
  )
}
