/**
 * Taking letters out for good, one bounded batch at a time: the letter, its attempts and its searchable text. The
 * counts keep how many were removed. Only what is Resolved or Expired can be reached from here: a pending letter is in
 * neither lane.
 */
import type { Instant } from '../core/clock.ts'
import { type Integer, type Statement, sql } from '../db/database.ts'
import { count } from './change.ts'
import { fromStatus } from './change-sql.ts'
import { idList } from './id-list.ts'
import { type Act, type LetterId, letterId, STATUS } from './letter.ts'
import type { LetterSource } from './source.ts'
import type { OfficeWork } from './work.ts'

/** Letters that are removed by the same rule. */
export type Lane = 'resolved' | 'expired'

const both = (since: string) => ({ postgres: since, sqlite: since })

/** An expired letter is kept from the later of its last failure and its expiry; a reporter's clock may be ahead of ours. */
const LANES = {
  resolved: { status: STATUS.Resolved, since: both('resolved_at'), index: 'letters_resolved' },
  expired: {
    status: STATUS.Expired,
    since: { postgres: 'greatest(expired_at, last_failure_at)', sqlite: 'max(expired_at, last_failure_at)' },
    index: 'letters_expired',
  },
} as const

/** The oldest of a lane behind ($2, $3), in the order of its index; what others have locked is left for the next run. */
const nextOf = (lane: Lane): Statement => {
  const { status, since, index } = LANES[lane]
  const select = (from: string, at: string) =>
    `SELECT id, ${at} AS since FROM ${from}
     WHERE status = ${status} AND ${at} < $1 AND (${at}, id) > ($2, $3) ORDER BY ${at}, id LIMIT $4`
  return sql(
    `letters.nextToRemove.${lane}`,
    {
      postgres: `${select('bartleby.letters', since.postgres)} FOR UPDATE SKIP LOCKED`,
      sqlite: select(`letters INDEXED BY ${index}`, since.sqlite),
    },
    { bigints: true },
  )
}

const next: Readonly<Record<Lane, Statement>> = { resolved: nextOf('resolved'), expired: nextOf('expired') }

/** Rows of locked letters, by primary key. */
const removeAttempts = sql('letters.removeAttempts', {
  postgres: 'DELETE FROM bartleby.letter_attempts WHERE letter_id = ANY($1::bigint[])',
  sqlite: 'DELETE FROM letter_attempts WHERE letter_id IN (SELECT value FROM json_each($1))',
})
const removeTexts = sql('letters.removeTexts', {
  postgres: 'DELETE FROM bartleby.letter_texts WHERE letter_id = ANY($1::bigint[])',
  sqlite: 'DELETE FROM letter_texts WHERE rowid IN (SELECT value FROM json_each($1))',
})

/**
 * Waits for who files texts at the moment, and keeps others from it until the transaction ends: a text that is filed after it was
 * removed would stay for ever. Take it last, when all rows are locked: then nobody waits for who waits for it.
 */
const keepFilingOut = sql('letters.keepFilingOut', {
  postgres: `SELECT pg_advisory_xact_lock_shared(hashtextextended('bartleby.letter_texts', 0))`,
  sqlite: '',
})

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
  const rows = await tx.rows<{ id: Integer; since: Integer }>(
    next[lane],
    before,
    after.since,
    after.id,
    limit,
  )
  const last = rows.at(-1)
  if (last === undefined) return { engines: new Map(), next: null }
  const ids = rows.map(({ id }) => letterId(id))
  const engines = await takeOut(work, 'remove', ids)
  const removed = ids.map((id) => ({ id, deadQueue: null, place: null }))
  for (const source of sources) await source.moved(work, removed, 'remove')
  return {
    engines,
    next: rows.length < limit ? null : { since: BigInt(last.since), id: BigInt(last.id) },
  }
}

/** Locked letters by primary key. Rows: one for all that were the same. */
const taking = (act: 'erase' | 'remove'): Statement => {
  const facts = `drawer, status, engine, CASE WHEN confirmed_at IS NULL THEN resolution END AS resolution`
  const gone = (inIds: string) =>
    `DELETE FROM bartleby.letters WHERE id ${inIds} AND ${fromStatus(act)} RETURNING ${facts}`
  return sql(`letters.${act}`, {
    postgres: `WITH gone AS (${gone('= ANY($1::bigint[])')})
               SELECT drawer, status, engine, resolution, count(*) AS letters FROM gone
               GROUP BY drawer, status, engine, resolution`,
    sqlite: `${gone('IN (SELECT value FROM json_each($1))')}, 1 AS letters`,
  })
}
const takings = { erase: taking('erase'), remove: taking('remove') } as const

interface GoneRow {
  readonly drawer: Integer
  readonly status: Integer
  readonly engine: string
  /** null when nobody waits for what comes of it. */
  readonly resolution: Act | null
  readonly letters: Integer
}

/** Takes letters out for good, with what is on file about them: earlier failures and the texts they are found by. How many, by engine. */
export async function takeOut(
  work: OfficeWork,
  act: 'erase' | 'remove',
  letters: readonly LetterId[],
): Promise<ReadonlyMap<string, number>> {
  const { tx } = work
  const ids = idList(
    tx.dialect,
    letters.map((id) => ({ id })),
  )
  const filing = tx.dialect === 'postgres' ? [tx.rows(keepFilingOut)] : []
  const [rows] = await Promise.all([
    tx.rows<GoneRow>(takings[act], ids),
    ...filing,
    tx.run(removeTexts, ids),
    tx.run(removeAttempts, ids),
  ])
  const engines = new Map<string, number>()
  for (const { drawer, status, engine, resolution, letters: many } of rows) {
    engines.set(engine, (engines.get(engine) ?? 0) + Number(many))
    const before = {
      drawer: Number(drawer),
      status: Number(status),
      resolution,
      confirmedAt: null,
      redrive: null,
    }
    count(work, act, before, Number(many))
  }
  const gone = [...engines.values()].reduce((sum, many) => sum + many, 0)
  if (gone !== letters.length)
    throw new Error(`${act}: ${letters.length} letters were given, and ${gone} of them could be taken out`)
  return engines
}
