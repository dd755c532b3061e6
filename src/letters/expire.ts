/**
 * Bulk expiry: pending letters whose last failure is long ago, oldest first. Every batch is a transaction of its own
 * with its history rows and counts; between batches everybody else has the store, so no writer waits for the whole.
 * Letters that a consumer of their dead queue holds, or that somebody else works on, are left alone.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Clock, type Instant, instant } from '../core/clock.ts'
import { type Database, type Integer, type Statement, sql } from '../db/database.ts'
import { change } from './change.ts'
import { readLetterCounts } from './counts.ts'
import { readDrawers } from './drawers.ts'
import { letterId, type Placed, type SourceName, STATUS } from './letter.ts'
import type { LetterSource } from './source.ts'
import { inOffice, type OfficeWork } from './work.ts'

export interface Expiry {
  /** Letters whose last failure is older than this expire. */
  readonly before: Instant
  /** null: of every engine. */
  readonly engine: string | null
  readonly actor: string
}

/**
 * Letters of one transaction, which is how long a writer may have to wait. On two cores that four times as much work
 * was fighting for, 250 took 28 ms on SQLite and 61 ms on PostgreSQL.
 */
export const EXPIRE_BATCH = 250

/** How long the store is left to others between two batches. */
const PAUSE_MS = 2

const FACTS = `letters.id, letters.drawer, letters.last_failure_at, letters.engine, letters.part, letters.shelf, letters.serial,
  letters.laid_at, letters.dead_queue`

/**
 * The oldest `$4` letters of a lane behind ($2, $3), in the order of the lane's index, so nothing is sorted and what
 * was expired before is not met again. Rows that others have locked are skipped, hence no deadlocks.
 */
const nextInLane = (name: string, lane: { readonly postgres: string; readonly sqlite: string }): Statement =>
  sql(
    name,
    {
      postgres: `SELECT ${FACTS} FROM bartleby.letters WHERE ${lane.postgres} LIMIT $4 FOR UPDATE SKIP LOCKED`,
      sqlite: `SELECT ${FACTS} FROM letters INDEXED BY ${lane.sqlite} AND leased = 0
        AND last_failure_at < $1 AND (last_failure_at, id) > ($2, $3) ORDER BY last_failure_at, id LIMIT $4`,
    },
    { bigints: true },
  )

const nextOfAll = nextInLane('letters.nextToExpire', {
  postgres: `status = ${STATUS.Pending} AND last_failure_at < $1 AND (last_failure_at, id) > ($2, $3) AND leased = 0
    ORDER BY last_failure_at, id`,
  sqlite: `letters_newest WHERE status = ${STATUS.Pending}`,
})
/** As a range: under equalities PostgreSQL takes any order by time as good, and may walk past all other drawers. */
const nextOfDrawer = nextInLane('letters.nextToExpireInDrawer', {
  postgres: `(drawer, status, last_failure_at, id) > ($5, ${STATUS.Pending}, $2, $3)
    AND (drawer, status, last_failure_at) < ($5, ${STATUS.Pending}, $1) AND leased = 0
    ORDER BY drawer, status, last_failure_at, id`,
  sqlite: `letters_in_drawer WHERE drawer = $5 AND status = ${STATUS.Pending}`,
})

interface Row {
  readonly id: Integer
  readonly drawer: Integer
  readonly last_failure_at: Integer
  readonly engine: string
  readonly part: Integer | null
  readonly shelf: Integer | null
  readonly serial: Integer | null
  readonly laid_at: Integer | null
  readonly dead_queue: string | null
}

/** Where a lane goes on: behind this letter. */
interface Cursor {
  readonly lastFailureAt: bigint
  readonly id: bigint
}

const START: Cursor = { lastFailureAt: -(2n ** 63n), id: 0n }

export interface ExpiryScope {
  readonly db: Database
  readonly clock: Clock
  readonly sources: ReadonlyMap<SourceName, LetterSource>
  /** Ends the run after the batch at hand. */
  readonly signal: AbortSignal
}

/** Expires them all, batch by batch; gives how many. */
export async function expireOlder(scope: ExpiryScope, expiry: Expiry): Promise<number> {
  const lifter = new Lifter(scope.sources)
  let expired = 0
  for (const drawer of await lanes(scope.db, expiry.engine)) {
    let cursor: Cursor | null = START
    while (cursor !== null) {
      if (scope.signal.aborted) return expired
      const from: Cursor = cursor
      const batch = await inOffice(scope.db, scope.clock, 'letters.expire', (work) =>
        expireBatch(work, lifter, expiry, drawer, from),
      )
      expired += batch.expired
      cursor = batch.next
      // On SQLite nothing of a batch leaves the event loop; without a pause no request would be answered meanwhile.
      if (cursor !== null) await pause(PAUSE_MS)
    }
  }
  return expired
}

/** The drawers that hold pending letters of an engine; null is the one lane of all letters. */
async function lanes(db: Database, engine: string | null): Promise<readonly (number | null)[]> {
  if (engine === null) return [null]
  return db.session('letters.lanes', async (session) => {
    const pending = new Set(
      (await readLetterCounts(session))
        .filter(({ status, letters }) => status === STATUS.Pending && letters > 0)
        .map(({ drawer }) => drawer),
    )
    return (await readDrawers(session))
      .filter((drawer) => drawer.engine === engine && pending.has(drawer.number))
      .map((drawer) => drawer.number)
  })
}

async function expireBatch(
  work: OfficeWork,
  lifter: Lifter,
  { before, actor }: Expiry,
  drawer: number | null,
  after: Cursor,
): Promise<{ readonly expired: number; readonly next: Cursor | null }> {
  const { tx } = work
  const page = [before, after.lastFailureAt, after.id, EXPIRE_BATCH] as const
  const rows =
    drawer === null
      ? await tx.rows<Row>(nextOfAll, ...page)
      : await tx.rows<Row>(nextOfDrawer, ...page, drawer)
  const last = rows.at(-1)
  if (last === undefined) return { expired: 0, next: null }
  await lifter.lift(work, rows)
  const letters = rows.map(({ id, engine }) => ({ id: letterId(id), engine }))
  await change(work, 'expire', letters, { actor, notes: null })
  const next = { lastFailureAt: BigInt(last.last_failure_at), id: BigInt(last.id) }
  return { expired: rows.length, next: rows.length < EXPIRE_BATCH ? null : next }
}

/** Takes letters out of where they lie, each through its own source. */
class Lifter {
  readonly #sources: ReadonlyMap<SourceName, LetterSource>
  /** The sources of the drawers seen so far; drawers never change. */
  readonly #sourceOf = new Map<number, SourceName>()

  constructor(sources: ReadonlyMap<SourceName, LetterSource>) {
    this.#sources = sources
  }

  async lift(work: OfficeWork, rows: readonly Row[]): Promise<void> {
    if (rows.some((row) => !this.#sourceOf.has(Number(row.drawer)))) {
      for (const { number, source } of await readDrawers(work.tx)) this.#sourceOf.set(number, source)
    }
    for (const [name, letters] of Map.groupBy(rows, (row) => this.#sourceOf.get(Number(row.drawer)))) {
      const source = name === undefined ? undefined : this.#sources.get(name)
      if (source !== undefined) await source.lift(work, letters.map(placed), 'expire')
      else if (letters.some((row) => row.part !== null))
        throw new Error(`nobody takes letters of '${name}' out of their dead queue`)
    }
  }
}

const placed = (row: Row): Placed => ({
  id: letterId(row.id),
  deadQueue: row.dead_queue,
  place:
    row.part === null
      ? null
      : {
          part: Number(row.part),
          shelf: Number(row.shelf),
          serial: Number(row.serial),
          leased: false,
          leaseDeadline: null,
          laidAt: instant(BigInt(row.laid_at ?? 0)),
        },
})
