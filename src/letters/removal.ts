/**
 * Taking letters out for good, one bounded batch at a time: the letter, its attempts and its searchable text. The
 * counts keep how many were removed. Only what is Resolved or Expired can be reached from here: a pending letter is in
 * neither lane.
 */
import type { Instant } from '../core/clock.ts'
import { type Integer, type Statement, sql, type Transaction } from '../db/database.ts'
import { idList } from './id-list.ts'
import { type Act, isUnconfirmed, letterId, STATUS } from './letter.ts'
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
    `SELECT id, drawer, engine, resolution, confirmed_at, ${at} AS since FROM ${from}
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
const removeFrom = (name: string, table: string, key: string): Statement =>
  sql(name, {
    postgres: `DELETE FROM bartleby.${table} WHERE ${key} = ANY($1::bigint[])`,
    sqlite: `DELETE FROM ${table} WHERE ${key} IN (SELECT value FROM json_each($1))`,
  })

const removeLetters = removeFrom('letters.remove', 'letters', 'id')
const removeAttempts = removeFrom('letters.removeAttempts', 'letter_attempts', 'letter_id')
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

interface RemovedRow {
  readonly id: Integer
  readonly drawer: Integer
  readonly engine: string
  readonly resolution: Act | null
  readonly confirmed_at: Integer | null
  readonly since: Integer
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
  const rows = await tx.rows<RemovedRow>(next[lane], before, after.since, after.id, limit)
  const last = rows.at(-1)
  if (last === undefined) return { engines: new Map(), next: null }
  await removeRows(tx, idList(tx.dialect, rows))
  const ids = rows.map(({ id }) => letterId(id))
  for (const source of sources) await source.forget?.(work, ids)
  const engines = new Map<string, number>()
  for (const row of rows) {
    engines.set(row.engine, (engines.get(row.engine) ?? 0) + 1)
    const drawer = Number(row.drawer)
    work.letters.moved({ drawer, status: LANES[lane].status }, { drawer, status: STATUS.removed })
    if (isUnconfirmed({ resolution: row.resolution, confirmedAt: row.confirmed_at }))
      work.letters.add(drawer, STATUS.unconfirmed, -1)
  }
  return {
    engines,
    next: rows.length < limit ? null : { since: BigInt(last.since), id: BigInt(last.id) },
  }
}

async function removeRows(tx: Transaction, ids: string): Promise<void> {
  await Promise.all([removeFiled(tx, ids), tx.run(removeLetters, ids)])
}

/** Removes what is on file about letters beside themselves: their earlier failures and the texts they are found by. */
export async function removeFiled(tx: Transaction, ids: string): Promise<void> {
  const kept = tx.dialect === 'postgres' ? [tx.rows(keepFilingOut)] : []
  await Promise.all([...kept, tx.run(removeTexts, ids), tx.run(removeAttempts, ids)])
}
