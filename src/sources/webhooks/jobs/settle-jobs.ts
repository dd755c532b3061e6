/**
 * Settles jobs in flight whose claims still hold: of couriers, pull consumers and recovery. One statement moves a batch, with its counts,
 * cases and letters; a job under another claim stays as it is.
 */
import type { Instant } from '../../../core/clock.ts'
import { type Xid, xid } from '../../../core/xid.ts'
import { allocateLetterIds } from '../../../letters/capture.ts'
import { type CaseFailure, closeCasesOf, fileCaseFailures } from '../../../letters/confirm.ts'
import type { LetterId } from '../../../letters/letter.ts'
import { lockLetters } from '../../../letters/locked.ts'
import type { Registers } from '../../../letters/registers.ts'
import type { OfficeWork } from '../../../letters/work.ts'
import { type Integer, type Statement, sql } from '../../../store/database.ts'
import { buryJobs, type DyingJob } from '../letters/bury.ts'
import { CountChanges } from '../numbers/counts.ts'
import { JOB } from '../webhook.ts'

/** A job that lives on, or is delivered. */
interface Move {
  readonly id: Xid
  readonly claim: string
  /** Null before its first failure. */
  readonly letter: LetterId | null
  readonly to: typeof JOB.later | typeof JOB.ready | typeof JOB.delivered
  /** For `later`. */
  readonly dueAt: Instant | null
  /** Null when no attempt failed. */
  readonly failure: Omit<CaseFailure, 'caseId' | 'errorStack'> | null
}

interface Death extends DyingJob, Pick<Move, 'letter'> {
  readonly to: typeof JOB.dead
}

export type Settlement = Move | Death

/** Returns those settled. Locks the letters that deliveries confirm and deaths reopen: they come before jobs. */
export async function settleAlone(
  work: OfficeWork,
  registers: Registers,
  settlements: readonly Settlement[],
): Promise<ReadonlySet<Xid>> {
  const isEnd = ({ to }: Settlement) => to === JOB.delivered || to === JOB.dead
  const counts = new CountChanges()
  await lockLetters(
    work.tx,
    settlements.filter(isEnd).flatMap(({ letter }) => letter ?? []),
  )
  const settled = await settleJobs(work, registers, counts, settlements)
  counts.write(work.tx)
  return settled
}

/** In a transaction that has locked their letters, and that counts more. */
export async function settleJobs(
  work: OfficeWork,
  registers: Registers,
  counts: CountChanges,
  settlements: readonly Settlement[],
): Promise<ReadonlySet<Xid>> {
  const living = settlements.filter((job): job is Move => job.to !== JOB.dead)
  const dying = settlements.filter((job): job is Death => job.to === JOB.dead)
  const moves = await withCases(work, living)
  const ids = await moveJobs(work, counts, moves)
  const moved = moves.filter(({ id }) => ids.has(id))
  await Promise.all([
    fileCaseFailures(
      work,
      moved.flatMap(({ letter, failure }) =>
        letter === null || failure === null ? [] : { ...failure, caseId: letter, errorStack: null },
      ),
    ),
    closeCasesOf(
      work,
      moved.flatMap(({ to, letter }) => (to === JOB.delivered ? (letter ?? []) : [])),
      new Map(),
    ),
  ])
  return new Set([...ids, ...(await buryJobs(work, registers, counts, dying))])
}

/** First failures get a case. */
async function withCases({ tx }: OfficeWork, moves: readonly Move[]): Promise<readonly Move[]> {
  const isFirst = ({ letter, failure }: Move) => letter === null && failure !== null
  const fresh = (await allocateLetterIds(tx, moves.filter(isFirst).length)).values()
  return moves.map((move) => {
    if (!isFirst(move)) return move
    const { value: letter } = fresh.next()
    if (letter === undefined) throw new Error(`there is no number for the case of job ${move.id}`)
    return { ...move, letter }
  })
}

/** By primary key, in the order of ids; `$2` has a list for each, not for a join, as in pull-moves.ts. Cost: the batch. */
const moveMany = sql(
  'webhooks.move',
  `
    UPDATE bartleby.webhook_jobs
    SET state = CAST($2::jsonb -> id ->> 1 AS smallint), attempts = attempts + CAST($2::jsonb -> id ->> 2 AS int),
      due_at = CAST($2::jsonb -> id ->> 3 AS bigint), letter = CAST($2::jsonb -> id ->> 4 AS bigint), claim = NULL, changed_at = $3
    WHERE id = ANY($1::text[]) AND state = ${JOB.inFlight} AND claim = CAST($2::jsonb -> id ->> 0 AS text)
    RETURNING id, consumer`,
)

/** Most are delivered, and need only their claim. */
const deliverMany = sql(
  'webhooks.deliver',
  `
    UPDATE bartleby.webhook_jobs SET state = ${JOB.delivered}, due_at = NULL, claim = NULL, changed_at = $3
    WHERE id = ANY($1::text[]) AND state = ${JOB.inFlight} AND claim = $2::jsonb ->> id
    RETURNING id, consumer`,
)

interface MovedRow {
  readonly id: string
  readonly consumer: Integer
}

async function moveJobs(
  { tx, now }: OfficeWork,
  counts: CountChanges,
  moves: readonly Move[],
): Promise<ReadonlySet<Xid>> {
  const to = new Map(moves.map((move) => [move.id, move.to]))
  const write = async (statement: Statement, some: readonly Move[], given: (move: Move) => unknown) => {
    if (some.length === 0) return []
    const list = some.map(({ id }) => id).sort()
    const byId = JSON.stringify(Object.fromEntries(some.map((move) => [move.id, given(move)])))
    return tx.rows<MovedRow>(statement, list, byId, now)
  }
  const isDelivered = ({ to }: Move) => to === JOB.delivered
  const rows = await Promise.all([
    write(deliverMany, moves.filter(isDelivered), ({ claim }) => claim),
    write(
      moveMany,
      moves.filter((move) => !isDelivered(move)),
      // As text: JSON numbers would lose the digits beyond 2^53.
      ({ claim, to, failure, dueAt, letter }) => [
        claim,
        to,
        failure === null ? 0 : 1,
        dueAt?.toString() ?? null,
        letter?.toString() ?? null,
      ],
    ),
  ])
  const moved = rows.flat()
  for (const { id, consumer } of moved)
    counts.moved(Number(consumer), JOB.inFlight, to.get(xid(id)) ?? JOB.ready)
  return new Set(moved.map(({ id }) => xid(id)))
}
