/**
 * Work that nobody waits for: folding counts, forgetting dedupe keys, removing what deleted queues left behind.
 * Every second, in bounded steps.
 */
import type { Log } from '../core/log.ts'
import { CountFolder } from '../db/fold.ts'
import type { Clearing } from './clear.ts'
import { partitionFold } from './counts.ts'
import { forgetDedupeKeys } from './dedupe.ts'
import { purgeDroppedParts } from './purge.ts'

const EVERY_MS = 1_000
const FORGET_LIMIT = 1_000
/** Deleted queues are looked for this often, and whenever a queue is deleted here. */
const PURGE_EVERY = 10

export class Housekeeper {
  readonly #clearing: Clearing
  readonly #log: Log
  readonly #folder: CountFolder
  readonly #stopped = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()
  #rounds = 0
  #purgeWanted = true

  constructor(clearing: Clearing, log: Log) {
    const { db, clock } = clearing
    this.#clearing = clearing
    this.#log = log
    this.#folder = new CountFolder(partitionFold, { db, clock, log })
  }

  start(): void {
    this.#folder.start()
    this.#timer = setInterval(() => this.#runOnce(), EVERY_MS)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    clearInterval(this.#timer)
    await Promise.all([this.#running, this.#folder.stop()])
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
    const { db, clock } = this.#clearing
    const now = clock.now()
    await db.session('dedupe.forget', (session) => forgetDedupeKeys(session, now, FORGET_LIMIT))
    if (this.#purgeWanted || round % PURGE_EVERY === 0) {
      this.#purgeWanted = false
      await purgeDroppedParts(this.#clearing, this.#stopped.signal)
    }
  }
}
