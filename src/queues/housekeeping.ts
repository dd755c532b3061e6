/**
 * Work that nobody waits for: folding counts, forgetting dedupe keys, removing what deleted queues left behind.
 * Every second, in bounded steps; where two servers would get in each other's way, under a leased lock.
 */
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Database } from '../db/database.ts'
import { leasedLock } from '../db/lock.ts'
import { foldCounts } from './counts.ts'
import { forgetDedupeKeys } from './dedupe.ts'
import { purgeDroppedParts } from './purge.ts'

const EVERY_MS = 1_000
const LOCK_US = 10_000_000n
const FORGET_LIMIT = 1_000
/** Deltas that committed late, below those already folded, are picked up this often. */
const FOLD_FROM_START_EVERY = 30
/** Deleted queues are looked for this often, and whenever a queue is deleted here. */
const PURGE_EVERY = 10

export class Housekeeper {
  readonly #db: Database
  readonly #clock: Clock
  readonly #log: Log
  readonly #owner = crypto.randomUUID()
  readonly #stopped = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()
  #rounds = 0
  #foldedThrough = 0
  #purgeWanted = true

  constructor(db: Database, clock: Clock, log: Log) {
    this.#db = db
    this.#clock = clock
    this.#log = log
  }

  start(): void {
    this.#timer = setInterval(() => this.#runOnce(), EVERY_MS)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    clearInterval(this.#timer)
    await this.#running
  }

  /** A queue was deleted: clean up behind it at once. */
  purgeSoon(): void {
    this.#purgeWanted = true
    this.#runOnce()
  }

  #runOnce(): void {
    this.#running = this.#running.then(async () => {
      if (this.#stopped.signal.aborted) return
      try {
        await this.#round()
      } catch (error) {
        this.#log.warn({ err: error }, 'housekeeping failed; the next round tries again')
      }
    })
  }

  async #round(): Promise<void> {
    const round = this.#rounds++
    const now = this.#clock.now()
    if (this.#db.dialect === 'postgres') await this.#fold(round % FOLD_FROM_START_EVERY === 0)
    await this.#db.session('dedupe.forget', (session) => forgetDedupeKeys(session, now, FORGET_LIMIT))
    if (this.#purgeWanted || round % PURGE_EVERY === 0) {
      this.#purgeWanted = false
      await purgeDroppedParts(this.#db, this.#clock, this.#stopped.signal)
    }
  }

  async #fold(fromStart: boolean): Promise<void> {
    const lock = leasedLock(this.#db, this.#clock, 'queues.fold', this.#owner)
    if (!(await lock.take(LOCK_US))) return
    const after = fromStart ? 0 : this.#foldedThrough
    this.#foldedThrough = await this.#db.session('counts.fold', (session) => foldCounts(session, after))
  }
}
