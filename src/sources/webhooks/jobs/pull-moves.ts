/**
 * What pull consumers make of their jobs, many callers in one transaction. A move needs the job as its caller saw it; of two on the same
 * job the first is made.
 */
import type { Instant } from '../../../core/clock.ts'
import { type Xid, xid } from '../../../core/xid.ts'
import type { LetterId } from '../../../letters/letter.ts'
import { lockLetters } from '../../../letters/locked.ts'
import type { Registers } from '../../../letters/registers.ts'
import type { LetterSource } from '../../../letters/source.ts'
import type { OfficeWork } from '../../../letters/work.ts'
import { sql, type Transaction } from '../../../store/database.ts'
import type { TakenFacts } from '../letters/bury.ts'
import { jobGone, renderJobs, requeueJobs } from '../letters/source.ts'
import { CountChanges } from '../numbers/counts.ts'
import { JOB, WEBHOOKS } from '../webhook.ts'
import { type JobRecord, queueOf } from './job-sql.ts'
import { type Settlement, settleJobs } from './settle-jobs.ts'

export type MoveKind = 'claim' | 'deliver' | 'give up' | 'take'

export interface PullMove {
  readonly kind: MoveKind
  readonly job: JobRecord
  /** Of a claim; 0 keeps what was said before. */
  readonly extraSeconds: number
}

interface PullTerms {
  readonly registers: Registers
  readonly maxRetry: number
  /** Without what its caller adds. */
  readonly claimUs: bigint
}

/** As given, or as given before. */
const SECONDS = 'coalesce(nullif(CAST($4::jsonb -> id ->> 2 AS bigint), 0), extra_seconds)'

/**
 * By primary key, from one of two states, with as many attempts as the caller saw; counts `$5` more. `$4` has a list for each, not for a
 * join: PostgreSQL would go through all of it for every job. Locks them.
 */
const claimMany = sql(
  'webhooks.claimPulled',
  `UPDATE bartleby.webhook_jobs SET state = ${JOB.inFlight}, changed_at = $1, exhausted = 0, extra_seconds = ${SECONDS},
     due_at = $1::bigint + $2::bigint + ${SECONDS} * 1000000,
     claim = CAST($4::jsonb -> id ->> 0 AS text), attempts = attempts + $5::int
   WHERE id = ANY($3::text[]) AND attempts = CAST($4::jsonb -> id ->> 1 AS int) AND state IN ($6, $7)
   RETURNING id`,
)

/** Tells for each whether it was made. */
export async function moveJobs(
  work: OfficeWork,
  terms: PullTerms,
  moves: readonly PullMove[],
): Promise<boolean[]> {
  const first = new Map<Xid, PullMove>()
  for (const move of moves) if (!first.has(move.job.id)) first.set(move.job.id, move)
  const of = (kind: MoveKind): PullMove[] => [...first.values()].filter((move) => move.kind === kind)
  const counts = new CountChanges()
  // Letters before jobs.
  await lockLetters(work.tx, lettersOf(moves.filter(({ kind }) => kind !== 'claim')))
  const waiting = { attempts: 0, from: [JOB.later, JOB.ready] } as const
  const claimed = await claim(work.tx, work.now, terms, of('claim'), waiting)
  const taken = await take(work, terms, of('take'))
  for (const { job } of first.values()) {
    if (claimed.has(job.id)) counts.moved(job.consumer, JOB.ready, JOB.inFlight)
    if (taken.has(job.id)) counts.moved(job.consumer, JOB.dead, JOB.inFlight)
  }
  const settlements = await settlementsOf(work, terms, first.values())
  const settled = await settleJobs(work, terms.registers, counts, settlements)
  counts.write(work.tx)
  const made = new Set([...claimed, ...taken, ...settled])
  return moves.map((move) => first.get(move.job.id) === move && made.has(move.job.id))
}

const lettersOf = (moves: readonly PullMove[]): LetterId[] => moves.flatMap(({ job }) => job.letter ?? [])

/** One more attempt for a dead job, and its letter is retried. */
async function take(
  work: OfficeWork,
  terms: PullTerms,
  moves: readonly PullMove[],
): Promise<ReadonlySet<Xid>> {
  const attempts = new Map<string, number>(moves.map(({ job }) => [job.id, job.attempts]))
  const taken = new Set<string>()
  // Its consumer has it at once, instead of a courier or whoever asks next.
  const send: LetterSource['send'] = async ({ tx, now }, rendered) => {
    const ids = new Set(rendered.map(({ letter }) => letter.sourceId))
    const fit = moves.filter(({ job }) => ids.has(job.id))
    for (const id of await claim(tx, now, terms, fit, { attempts: 1, from: [JOB.dead, JOB.dead] }))
      taken.add(id)
    return rendered.map(({ letter, queue }) => {
      const id = letter.sourceId
      const more: TakenFacts = { attemptsBefore: (attempts.get(id) ?? 0) + 1 }
      return taken.has(id) ? { letter, queue, messageId: id, more } : jobGone(letter)
    })
  }
  for (const [consumer, ofConsumer] of Map.groupBy(moves, ({ job }) => job.consumer)) {
    const queue = await queueOf(work.tx, consumer)
    const sending = { queue, letters: lettersOf(ofConsumer), notes: TAKEN, actor: actorOf(queue) }
    await requeueJobs(work, { name: WEBHOOKS, render: renderJobs, send }, sending)
  }
  return new Set(moves.map(({ job }) => job.id).filter((id) => taken.has(id)))
}

const TAKEN = 'Taken by its consumer'

/** The actor, when a consumer acts. */
export const actorOf = (queue: string): string => `consumer ${queue}`

async function settlementsOf(
  { tx }: OfficeWork,
  { maxRetry }: PullTerms,
  moves: Iterable<PullMove>,
): Promise<readonly Settlement[]> {
  const settlements: Settlement[] = []
  for (const { kind, job } of moves) {
    const { id, claim, letter, attempts } = job
    if (claim === null) continue
    const held = { id, claim, letter }
    if (kind === 'deliver') settlements.push({ ...held, to: JOB.delivered, dueAt: null, failure: null })
    if (kind === 'give up')
      settlements.push({
        ...held,
        to: JOB.dead,
        exhausted: attempts >= maxRetry,
        reason: 'rejected',
        errorClass: 'Rejected',
        errorMessage: 'its consumer declared it dead',
        failedBy: await queueOf(tx, job.consumer),
      })
  }
  return settlements
}

async function claim(
  tx: Transaction,
  now: Instant,
  { claimUs }: PullTerms,
  moves: readonly PullMove[],
  { attempts, from }: { readonly attempts: number; readonly from: readonly [number, number] },
): Promise<ReadonlySet<Xid>> {
  if (moves.length === 0) return new Set()
  const ids = moves.map(({ job }) => job.id).sort()
  const given = moves.map(({ job, extraSeconds }) => [
    job.id,
    [crypto.randomUUID(), job.attempts, extraSeconds],
  ])
  const values = [ids, JSON.stringify(Object.fromEntries(given)), attempts, ...from]
  const rows = await tx.rows<{ id: string }>(claimMany, now, claimUs, ...values)
  return new Set(rows.map(({ id }) => xid(id)))
}
