/**
 * What pull consumers make of their jobs: take them, deliver them, give them up, take up dead ones. The moves of many callers are
 * done in one transaction. Each is made only if its job is as its caller saw it; of two on the same job the first is.
 */
import type { Instant } from '../core/clock.ts'
import { type Xid, xid } from '../core/xid.ts'
import { type Integer, sql, type Transaction, textList, type Value } from '../db/database.ts'
import { closeCasesOf } from '../letters/confirm.ts'
import type { Registers } from '../letters/death-note.ts'
import { type LetterId, letterId } from '../letters/letter.ts'
import { lockLetters } from '../letters/reopen.ts'
import type { LetterSource } from '../letters/source.ts'
import type { OfficeWork } from '../letters/work.ts'
import { type JobRecord, queueOf } from './job-sql.ts'
import { buryJobs, type DyingJob } from './letters/bury.ts'
import type { TakenFacts } from './letters/rounds.ts'
import { jobGone, renderJobs, requeueJobs } from './letters/source.ts'
import { Tallies } from './tallies.ts'
import { JOB, WEBHOOKS } from './webhook.ts'

export const MOVES = ['claim', 'deliver', 'give up', 'take'] as const
export type MoveKind = (typeof MOVES)[number]

/** One move, on a job as its caller saw it. */
export interface PullMove {
  readonly kind: MoveKind
  readonly job: JobRecord
  /** For a claim: seconds that it may take longer; 0 leaves what was said before. */
  readonly extraSeconds: number
}

export interface PullTerms {
  readonly registers: Registers
  readonly maxRetry: number
  /** How long a claim holds, without what its caller adds. */
  readonly claimUs: bigint
}

const claimed = (seconds: string): string => `state = ${JOB.inFlight}, changed_at = $1, exhausted = 0,
  extra_seconds = ${seconds}, due_at = CAST($1 AS bigint) + CAST($2 AS bigint) + ${seconds} * 1000000`

/** What is given for a job: `$4` has a list for each id. Not a join: PostgreSQL would go through the list for every job. */
const given = (place: number): string => `($4::jsonb -> id ->> ${place})`

/** How long the claim of a job may take longer: what is given, or what was given before. */
const SECONDS = `coalesce(nullif(${given(2)}::bigint, 0), extra_seconds)`

/**
 * Claims jobs by primary key that are in one of two states and were attempted as often as their callers saw, and counts `$5` more
 * attempts. Locks them. Rows: those that were.
 */
const claimMany = sql('webhooks.claimPulled', {
  postgres: `
    UPDATE bartleby.webhook_jobs SET ${claimed(SECONDS)}, claim = ${given(0)}, attempts = attempts + $5::int
    WHERE id = ANY($3::text[]) AND attempts = ${given(1)}::int AND +state IN ($6, $7)
    RETURNING id`,
  sqlite: '',
})
const claimOne = sql('webhooks.claimPulledOne', {
  postgres: '',
  sqlite: `UPDATE webhook_jobs SET ${claimed('coalesce(nullif($6, 0), extra_seconds)')}, claim = $4, attempts = attempts + $7
           WHERE id = $3 AND attempts = $5 AND +state IN ($8, $9) RETURNING id`,
})

/** Jobs by primary key that are under the claims that their callers saw. Locks them. Rows: those that were. */
const deliverMany = sql('webhooks.deliverPulled', {
  postgres: `
    UPDATE bartleby.webhook_jobs SET state = ${JOB.delivered}, changed_at = $1, due_at = NULL, claim = NULL
    WHERE id = ANY($2::text[]) AND +state = ${JOB.inFlight} AND claim = $3::jsonb ->> id
    RETURNING id, letter`,
  sqlite: '',
})
const deliverOne = sql(
  'webhooks.deliverPulledOne',
  {
    postgres: '',
    sqlite: `UPDATE webhook_jobs SET state = ${JOB.delivered}, changed_at = $1, due_at = NULL, claim = NULL
           WHERE id = $2 AND +state = ${JOB.inFlight} AND claim = $3 RETURNING id, letter`,
  },
  { bigints: true },
)

/** Does moves; gives for each whether it was made. */
export async function moveJobs(
  work: OfficeWork,
  terms: PullTerms,
  moves: readonly PullMove[],
): Promise<boolean[]> {
  const first = new Map<Xid, PullMove>()
  for (const move of moves) if (!first.has(move.job.id)) first.set(move.job.id, move)
  const of = (kind: MoveKind): PullMove[] =>
    [...first.values()].filter((move) => move.kind === kind).sort((a, b) => (a.job.id < b.job.id ? -1 : 1))
  const tallies = new Tallies()
  // Letters before jobs.
  await lockLetters(work.tx, lettersOf(moves.filter(({ kind }) => kind !== 'claim')))
  const claimed = await claim(work, terms, of('claim'), tallies)
  const delivered = await deliver(work, of('deliver'), tallies)
  const taken = await take(work, terms, of('take'), tallies)
  const buried = await giveUp(work, terms, of('give up'), tallies)
  tallies.write(work.tx)
  const made = new Set([...claimed, ...delivered, ...taken, ...buried])
  return moves.map((move) => first.get(move.job.id) === move && made.has(move.job.id))
}

const lettersOf = (moves: readonly PullMove[]): LetterId[] => moves.flatMap(({ job }) => job.letter ?? [])

async function claim(
  work: OfficeWork,
  { claimUs }: PullTerms,
  moves: readonly PullMove[],
  tallies: Tallies,
): Promise<readonly Xid[]> {
  const ids = await claimAll(work.tx, work.now, claimUs, moves, { attempts: 0, from: [JOB.later, JOB.ready] })
  count(moves, ids, (job) => tallies.moved(job.consumer, JOB.ready, JOB.inFlight))
  return ids
}

/** A dead job goes on: one more attempt, and its letter is retried. */
async function take(
  work: OfficeWork,
  { claimUs }: PullTerms,
  moves: readonly PullMove[],
  tallies: Tallies,
): Promise<readonly Xid[]> {
  const attempts = new Map<string, number>(moves.map(({ job }) => [job.id, job.attempts]))
  const taken: Xid[] = []
  // Its consumer has it at once, instead of a courier or whoever asks next.
  const send: LetterSource['send'] = async ({ tx, now }, rendered) => {
    const ids = new Set(rendered.map(({ letter }) => letter.sourceId))
    const fit = moves.filter(({ job }) => ids.has(job.id))
    const from = { attempts: 1, from: [JOB.dead, JOB.dead] } as const
    taken.push(...(await claimAll(tx, now, claimUs, fit, from)))
    return rendered.map(({ letter, queue }) => {
      const id = letter.sourceId
      const more: TakenFacts = { attemptsBefore: (attempts.get(id) ?? 0) + 1 }
      return taken.some((each) => each === id) ? { letter, queue, messageId: id, more } : jobGone(letter)
    })
  }
  for (const [consumer, ofConsumer] of Map.groupBy(moves, ({ job }) => job.consumer)) {
    const queue = await queueOf(work.tx, consumer)
    const sending = { queue, letters: lettersOf(ofConsumer), notes: TAKEN, actor: actorOf(queue) }
    await requeueJobs(work, { name: WEBHOOKS, render: renderJobs, send }, sending)
  }
  count(moves, taken, (job) => tallies.moved(job.consumer, JOB.dead, JOB.inFlight))
  return taken
}

const TAKEN = 'Taken by its consumer'

/** Who acts when a consumer does. */
export const actorOf = (queue: string): string => `consumer ${queue}`

async function deliver(
  work: OfficeWork,
  moves: readonly PullMove[],
  tallies: Tallies,
): Promise<readonly Xid[]> {
  if (moves.length === 0) return []
  const rows = await deliverAll(work.tx, work.now, moves)
  const cases = rows.flatMap(({ letter }) => (letter === null ? [] : letterId(letter)))
  await closeCasesOf(work, cases, new Map())
  const ids = rows.map(({ id }) => xid(id))
  count(moves, ids, (job) => tallies.moved(job.consumer, JOB.inFlight, JOB.delivered))
  return ids
}

async function giveUp(
  work: OfficeWork,
  { registers, maxRetry }: PullTerms,
  moves: readonly PullMove[],
  tallies: Tallies,
): Promise<ReadonlySet<Xid>> {
  const dying: DyingJob[] = []
  for (const { job } of moves) {
    if (job.claim === null) continue
    dying.push({
      id: job.id,
      claim: job.claim,
      exhausted: job.attempts >= maxRetry,
      reason: 'rejected',
      errorClass: 'Rejected',
      errorMessage: 'its consumer declared it dead',
      failedBy: await queueOf(work.tx, job.consumer),
    })
  }
  return buryJobs(work, registers, tallies, dying)
}

function count(moves: readonly PullMove[], ids: readonly Xid[], moved: (job: JobRecord) => void): void {
  const made = new Set(ids)
  for (const { job } of moves) if (made.has(job.id)) moved(job)
}

async function claimAll(
  tx: Transaction,
  now: Instant,
  claimUs: bigint,
  moves: readonly PullMove[],
  { attempts, from }: { readonly attempts: number; readonly from: readonly [number, number] },
): Promise<readonly Xid[]> {
  if (moves.length === 0) return []
  const rows: { id: string }[] = []
  if (tx.dialect === 'postgres') {
    const given = moves.map(({ job, extraSeconds }) => [
      job.id,
      [crypto.randomUUID(), job.attempts, extraSeconds],
    ])
    const values = [idsOf(tx, moves), JSON.stringify(Object.fromEntries(given)), attempts, ...from]
    rows.push(...(await tx.rows<{ id: string }>(claimMany, now, claimUs, ...values)))
  } else {
    for (const { job, extraSeconds } of moves) {
      const given: Value[] = [job.id, crypto.randomUUID(), job.attempts, extraSeconds]
      rows.push(...(await tx.rows<{ id: string }>(claimOne, now, claimUs, ...given, attempts, ...from)))
    }
  }
  return rows.map(({ id }) => xid(id))
}

async function deliverAll(tx: Transaction, now: Instant, moves: readonly PullMove[]) {
  type Row = { readonly id: string; readonly letter: Integer | null }
  if (tx.dialect === 'postgres') {
    const claims = Object.fromEntries(moves.map(({ job }) => [job.id, job.claim]))
    return tx.rows<Row>(deliverMany, now, idsOf(tx, moves), JSON.stringify(claims))
  }
  const rows: Row[] = []
  for (const { job } of moves) rows.push(...(await tx.rows<Row>(deliverOne, now, job.id, job.claim)))
  return rows
}

const idsOf = (tx: Transaction, moves: readonly PullMove[]): string =>
  textList(
    tx.dialect,
    moves.map(({ job }) => job.id),
  )
