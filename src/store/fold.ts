/** Folding of counts: deltas on PostgreSQL are added to totals (`counter.ts`) by one server at a time, under a leased lock. SQLite has none. */
import { type Clock, type Instant, instant, later, microseconds } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { Rounds, type Service } from '../core/rounds.ts'
import { type Database, type Integer, type Session, type Statement, sql } from './database.ts'
import { leasedLock } from './lock.ts'

export interface Fold {
  /** The verb of the store's metrics. */
  readonly name: string
  /** The lock, under which the time of the last fold is kept too. */
  readonly lock: string
  readonly statement: Statement
}

/** Deltas per fold: a transaction of a few milliseconds. */
const FOLD_LIMIT = 5_000
/** A lost holder frees the lock after so long. */
const LEASE_US = 10_000_000n

export interface FoldTurn {
  readonly clock: Clock
  /** Unique among all running servers. */
  readonly owner: string
  /** Deltas up to this one are left alone. */
  readonly after?: number
  readonly most?: number
}

/**
 * Folds all deltas in bounded transactions. Returns the last one, or `after`; null when another server has the lock. Deltas that commit
 * late below it are still counted by every read, and folded by a later call that starts at 0.
 */
export async function foldCounts(
  db: Database,
  { name, lock, statement }: Fold,
  { clock, owner, after = 0, most = FOLD_LIMIT }: FoldTurn,
): Promise<number | null> {
  for (let last = after; ; ) {
    const now = clock.now()
    const [row] = await db.statement(name, (tx) =>
      tx.rows<{ held: boolean; folded: Integer; last: Integer | null }>(
        statement,
        most,
        last,
        lock,
        owner,
        later(now, LEASE_US),
        now,
      ),
    )
    if (row?.held !== true) return null
    if (row.last !== null) last = Number(row.last)
    if (Number(row.folded) < most) return last
  }
}

/** By primary key. */
const readLastFold = sql('folds.last', {
  postgres: 'SELECT folded_at FROM bartleby.count_folds WHERE name = $1',
})

/** Of whichever server; null: never. SQLite's totals are always current, so that watchers need not know the store. */
export async function readLastFoldAt(
  session: Session,
  { lock }: Fold,
  now: Instant,
): Promise<Instant | null> {
  if (session.dialect === 'sqlite') return now
  const [row] = await session.rows<{ folded_at: Integer }>(readLastFold, lock)
  return row === undefined ? null : instant(BigInt(row.folded_at))
}

/** At most. */
const EVERY_MS = 1_000
/** Deltas that committed late, below folded ones, are picked up so often. */
const FROM_START_EVERY = 30

interface CountFolderOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  /** Folds more often than every second. */
  readonly everyMs?: number
}

/** Folds counts at its start, then every second. */
export class CountFolder implements Service {
  readonly name: string
  readonly #options: CountFolderOptions
  readonly #fold: Fold
  readonly #owner = crypto.randomUUID()
  readonly #folding: Rounds
  #folds = 0
  #foldedThrough = 0
  /** The last round had the lock. */
  #isHeld = false

  constructor(fold: Fold, options: CountFolderOptions) {
    const { clock, log, everyMs = EVERY_MS } = options
    this.name = fold.name
    this.#fold = fold
    this.#options = options
    this.#folding = new Rounds({
      ...{ name: fold.name, clock, log, everyUs: microseconds(Math.min(EVERY_MS, everyMs) / 1_000) },
      act: () => this.#foldNew(),
      trouble: 'counts were not folded; the next round tries again',
      about: { counts: fold.name },
    })
  }

  get rounds(): readonly Rounds[] {
    return this.#isNeeded ? [this.#folding] : []
  }

  get #isNeeded(): boolean {
    return this.#options.db.dialect !== 'sqlite'
  }

  start(): void {
    if (this.#isNeeded) this.#folding.start()
  }

  /** Ends after the current fold and frees the lock. */
  async stop(): Promise<void> {
    await this.#folding.stop()
    // Not after a failed round: an absent store must not be awaited, and the lease ends by itself.
    if (!this.#isHeld) return
    const { db, clock } = this.#options
    await leasedLock(db, clock, this.#fold.lock, this.#owner)
      .drop()
      .catch(() => {})
  }

  async #foldNew(): Promise<void> {
    const { db, clock } = this.#options
    const after = this.#folds++ % FROM_START_EVERY === 0 ? 0 : this.#foldedThrough
    this.#isHeld = false
    const last = await foldCounts(db, this.#fold, { clock, owner: this.#owner, after })
    this.#isHeld = last !== null
    if (last !== null) this.#foldedThrough = last
  }
}
