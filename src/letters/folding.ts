/**
 * Folds the deltas of the letter counts into the totals, every second, on one server at a time. SQLite keeps totals
 * and has nothing to fold.
 */
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Database } from '../db/database.ts'
import { leasedLock } from '../db/lock.ts'
import { foldLetterCounts } from './counts.ts'

const EVERY_MS = 1_000
const LOCK_US = 10_000_000n
/** Deltas that committed late, below those already folded, are picked up this often. */
const FROM_START_EVERY = 30

export class CountFolder {
  readonly #db: Database
  readonly #clock: Clock
  readonly #log: Log
  readonly #owner = crypto.randomUUID()
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #rounds = 0
  #foldedThrough = 0

  constructor(db: Database, clock: Clock, log: Log) {
    this.#db = db
    this.#clock = clock
    this.#log = log
  }

  start(): void {
    if (this.#db.dialect === 'sqlite') return
    this.#timer = setInterval(() => {
      this.#running ??= this.#fold()
        .catch((error: unknown) =>
          this.#log.warn({ err: error }, 'letter counts were not folded; the next round tries again'),
        )
        .finally(() => {
          this.#running = undefined
        })
    }, EVERY_MS)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#running
  }

  async #fold(): Promise<void> {
    const lock = leasedLock(this.#db, this.#clock, 'letters.fold', this.#owner)
    if (!(await lock.take(LOCK_US))) return
    const after = this.#rounds++ % FROM_START_EVERY === 0 ? 0 : this.#foldedThrough
    this.#foldedThrough = await this.#db.session('letterCounts.fold', (session) =>
      foldLetterCounts(session, after),
    )
  }
}
