/**
 * One run of retention: history, then letters, then idempotency keys and activity, in bounded batches with pauses. The run has one
 * history row, of the office itself, and every batch that removes something brings it up to date in its own
 * transaction: nothing is ever gone that the row does not tell of.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Clock, type Instant, later } from '../core/clock.ts'
import type { Database } from '../db/database.ts'
import { elapsedMs, type HistoryRow, keepRunRow } from '../history/record.ts'
import { FROM_THE_OLDEST, forgetSources, removeHistory } from '../history/retention.ts'
import { forgetActivity } from './activity.ts'
import { forgetKeys } from './idempotency.ts'
import { OFFICE } from './letter.ts'
import { LANE_START, type Lane, removeBatch } from './removal.ts'
import type { LetterSource } from './source.ts'
import { inOffice, type OfficeWork } from './work.ts'

/** What one run removed. */
export interface Removed {
  readonly letters: number
  readonly history: number
}

const DAY_US = 86_400_000_000n
/** Rows of one transaction: a few milliseconds, also on SQLite, where everybody waits for it. */
const BATCH = 500
/** What the store is left to others between two batches. */
const PAUSE_MS = 10

const ACTOR = 'retention'

/** Another server holds the lock, or this one is stopping: the rest is left to a later run. */
class RunEnded extends Error {
  override readonly name = 'RunEnded'
}

/** What is gone so far, and the history row that says so; there is none before the first. */
interface Toll {
  readonly row: HistoryRow | null
  /** How many letters of each engine. */
  readonly letters: ReadonlyMap<string, number>
  readonly history: number
}

export class RetentionRun {
  readonly #db: Database
  readonly #clock: Clock
  readonly #sources: readonly LetterSource[]
  readonly #mayGoOn: () => Promise<boolean>
  readonly #startedAt: Instant
  readonly #correlationId = crypto.randomUUID()
  #toll: Toll = { row: null, letters: new Map(), history: 0 }

  /** `mayGoOn` is asked before every batch. */
  constructor(db: Database, clock: Clock, sources: readonly LetterSource[], mayGoOn: () => Promise<boolean>) {
    this.#db = db
    this.#clock = clock
    this.#sources = sources
    this.#mayGoOn = mayGoOn
    this.#startedAt = clock.now()
  }

  /** What is gone so far, also after the run has failed. */
  get removed(): Removed {
    return { letters: sum(this.#toll.letters.values()), history: this.#toll.history }
  }

  /** Removes all that is older than `retentionDays`, or what it comes to before it may not go on. */
  async removeOlderThan(retentionDays: number): Promise<void> {
    const before = later(this.#startedAt, -BigInt(retentionDays) * DAY_US)
    try {
      // History first: the capture of a plain queue's letter is not younger than the letter, and needs it to be told.
      await this.#removeHistory(before)
      await this.#removeLetters('expired', before)
      await this.#removeLetters('resolved', before)
      await this.#forgetKeys()
      await this.#forgetActivity(retentionDays)
    } catch (error) {
      if (!(error instanceof RunEnded)) throw error
    }
  }

  #removeLetters(lane: Lane, before: Instant): Promise<void> {
    return this.#inBatches(LANE_START, (from) =>
      inOffice(this.#db, this.#clock, 'letters.remove', async (work) => {
        const { engines, next } = await removeBatch(work, this.#sources, lane, before, from, BATCH)
        await this.#record(work, { letters: engines, history: 0 })
        return next
      }),
    )
  }

  async #removeHistory(before: Instant): Promise<void> {
    // The source ids first: one that is known always has its entry.
    await this.#inBatches(FROM_THE_OLDEST, (from) =>
      this.#db.transaction('history.forgetSources', (tx) => forgetSources(tx, before, from, BATCH)),
    )
    await this.#inBatches(FROM_THE_OLDEST, (from) =>
      inOffice(this.#db, this.#clock, 'history.remove', async (work) => {
        const { removed, next } = await removeHistory(work.tx, before, from, BATCH)
        await this.#record(work, { letters: new Map(), history: removed })
        return next
      }),
    )
  }

  #forgetKeys(): Promise<void> {
    return this.#inBatches(BATCH, async () => {
      const forgotten = await forgetKeys(this.#db, this.#clock.now(), BATCH)
      return forgotten < BATCH ? null : BATCH
    })
  }

  #forgetActivity(retentionDays: number): Promise<void> {
    return this.#inBatches(BATCH, async () => {
      const isMore = await forgetActivity(this.#db, this.#clock.now(), retentionDays, BATCH)
      return isMore ? BATCH : null
    })
  }

  /** Runs `batch` from `start` on until it gives null, where there is nothing left. */
  async #inBatches<Cursor>(start: Cursor, batch: (from: Cursor) => Promise<Cursor | null>): Promise<void> {
    let from: Cursor | null = start
    while (from !== null) {
      if (!(await this.#mayGoOn())) throw new RunEnded()
      from = await batch(from)
      await pause(PAUSE_MS)
    }
  }

  /** Adds what a batch removed to the row of the run. */
  async #record(work: OfficeWork, batch: Omit<Toll, 'row'>): Promise<void> {
    if (batch.letters.size === 0 && batch.history === 0) return
    const letters = new Map(this.#toll.letters)
    for (const [engine, count] of batch.letters) letters.set(engine, (letters.get(engine) ?? 0) + count)
    const history = this.#toll.history + batch.history
    const row = await keepRunRow(work.tx, this.#toll.row, {
      engine: OFFICE,
      operation: 'remove',
      status: 'Succeeded',
      instanceId: null,
      correlationId: this.#correlationId,
      createdAt: this.#startedAt,
      durationMs: elapsedMs(this.#startedAt, work.now),
      actor: ACTOR,
      output: Buffer.from(JSON.stringify({ letters: Object.fromEntries(letters), history })),
    })
    // Only after the commit: a transaction that is rolled back and run again has removed nothing yet.
    work.afterCommit(() => {
      this.#toll = { row, letters, history }
    })
  }
}

const sum = (counts: Iterable<number>): number => {
  let total = 0
  for (const count of counts) total += count
  return total
}
