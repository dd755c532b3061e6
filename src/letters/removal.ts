/**
 * Taking letters out for good, one bounded batch at a time: the letter, its attempts and its searchable text. The
 * counts keep how many were removed. Only what is Resolved or Expired can be reached from here: a pending letter is in
 * neither lane.
 */
import type { Instant } from '../core/clock.ts'
import { type Integer, type Statement, sql } from '../db/database.ts'
import { change, NOBODY } from './change.ts'
import { letterId, STATUS } from './letter.ts'
import type { LetterSource } from './source.ts'
import type { OfficeWork } from './work.ts'

/** Letters that are removed by the same rule. */
export type Lane = 'resolved' | 'expired'

/** An expired letter is kept from the later of its last failure and its expiry; a reporter's clock may be ahead of ours. */
const LANES = {
  resolved: { status: STATUS.Resolved, since: 'resolved_at', index: 'letters_resolved' },
  expired: {
    status: STATUS.Expired,
    since: 'greatest(expired_at, last_failure_at)',
    index: 'letters_expired',
  },
} as const

/** The oldest of a lane behind ($2, $3), in the order of its index; what others have locked is left for the next run. */
const nextOf = (lane: Lane): Statement => {
  const { status, since, index } = LANES[lane]
  return sql(
    `letters.nextToRemove.${lane}`,
    `SELECT id, engine, ${since} AS since FROM bartleby.letters INDEXED BY ${index}
     WHERE status = ${status} AND ${since} < $1 AND (${since}, id) > ($2, $3) ORDER BY ${since}, id LIMIT (SELECT $4::bigint)
     FOR UPDATE SKIP LOCKED`,
    { bigints: true },
  )
}

const next: Readonly<Record<Lane, Statement>> = { resolved: nextOf('resolved'), expired: nextOf('expired') }

/** Where a lane goes on: behind this letter. */
export interface LaneCursor {
  readonly since: bigint
  readonly id: bigint
}

export const LANE_START: LaneCursor = { since: -(2n ** 63n), id: 0n }

export interface RemovedBatch {
  /** How many letters of each engine are gone. */
  readonly engines: ReadonlyMap<string, number>
  /** null: the lane is done. */
  readonly next: LaneCursor | null
}

/** Removes at most `limit` letters of a lane that are older than `before`, and what their sources keep about them. */
export async function removeBatch(
  work: OfficeWork,
  sources: readonly LetterSource[],
  lane: Lane,
  before: Instant,
  after: LaneCursor,
  limit: number,
): Promise<RemovedBatch> {
  const { tx } = work
  const rows = await tx.rows<{ id: Integer; engine: string; since: Integer }>(
    next[lane],
    before,
    after.since,
    after.id,
    limit,
  )
  const last = rows.at(-1)
  if (last === undefined) return { engines: new Map(), next: null }
  const letters = rows.map(({ id, engine }) => ({ id: letterId(id), engine, deadQueue: null, place: null }))
  await change(work, 'remove', letters, NOBODY)
  for (const source of sources) await source.moved(work, letters, 'remove')
  const engines = new Map<string, number>()
  for (const { engine } of letters) engines.set(engine, (engines.get(engine) ?? 0) + 1)
  return {
    engines,
    next: rows.length < limit ? null : { since: BigInt(last.since), id: BigInt(last.id) },
  }
}
