/**
 * Messages that are done with: once an hour one server removes those that were received too long ago and whose jobs are all delivered,
 * with these jobs and their counts, under a lock that is leased batch by batch. A message with a job that waits, runs or is dead
 * stays, whatever its age. Letters of its jobs are settled and keep to the office's own retention.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Alarm, type Clock, type Instant, later } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Database } from '../db/database.ts'
import { leasedLock } from '../db/lock.ts'
import { FROM_THE_START, nextChannel, type PruneCursor, pruneBatch } from './prune-batch.ts'
import type { WebhookSettings } from './settings.ts'

export interface PrunerParts {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly settings: Pick<WebhookSettings, 'retention'>
}

const DAY_US = 86_400_000_000
const HOUR_US = 3_600_000_000n
/** Renewed before every batch; a server that dies is replaced after this long. */
const LOCK_US = 60_000_000n
/** What the store is left to others between two batches. */
const PAUSE_MS = 10

export class Pruner {
  readonly #parts: PrunerParts
  readonly #owner = crypto.randomUUID()
  readonly #stopped = new AbortController()
  #alarm: Alarm | undefined
  #running: Promise<unknown> = Promise.resolve()

  constructor(parts: PrunerParts) {
    this.#parts = parts
  }

  /** Runs now, and from then on every hour; never, when messages are kept for ever. */
  start(): void {
    const { clock, log, settings } = this.#parts
    if (settings.retention.days === 0) return
    this.runNow()
      .catch((error: unknown) =>
        log.warn({ err: error }, 'pruning messages failed; the next run tries again'),
      )
      .finally(() => {
        if (this.#stopped.signal.aborted) return
        this.#alarm = clock.alarm(later(clock.now(), HOUR_US), () => this.start())
      })
  }

  /** Ends the run at hand after its batch. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#alarm?.cancel()
    await this.#running.catch(() => {})
  }

  /** One run now, which gives how many messages it removed; null when another server is at it. */
  runNow(): Promise<number | null> {
    const run = this.#running.catch(() => {}).then(() => this.#run())
    this.#running = run
    return run
  }

  async #run(): Promise<number | null> {
    if (this.#stopped.signal.aborted) return null
    const { db, clock, log, settings } = this.#parts
    const lock = leasedLock(db, clock, 'webhooks.prune', this.#owner)
    if (!(await lock.take(LOCK_US))) return null
    const before = later(clock.now(), -BigInt(Math.round(settings.retention.days * DAY_US)))
    let removed = 0
    try {
      for await (const messages of this.#batches(before)) {
        removed += messages
        if (this.#stopped.signal.aborted || !(await lock.take(LOCK_US))) break
        await pause(PAUSE_MS)
      }
    } finally {
      if (removed > 0) log.info({ messages: removed }, 'removed webhook messages that were past their time')
      await lock.drop()
    }
    return removed
  }

  /** Goes through every channel and gives how many each batch removed. What must stay is passed once. */
  async *#batches(before: Instant): AsyncIterable<number> {
    const { db } = this.#parts
    for (
      let channel = await this.#channelAfter(0);
      channel !== null && !this.#stopped.signal.aborted;
      channel = await this.#channelAfter(channel)
    ) {
      const of: number = channel
      let from: PruneCursor | null = FROM_THE_START
      while (from !== null) {
        const after: PruneCursor = from
        const batch = await db.transaction('webhooks.prune', (tx) => pruneBatch(tx, of, before, after))
        // A channel with nothing to remove, as most have, is not worth a pause.
        if (batch.removed > 0 || batch.next !== null) yield batch.removed
        from = batch.next
      }
    }
  }

  #channelAfter(channel: number): Promise<number | null> {
    return this.#parts.db.session('webhooks.prune', (session) => nextChannel(session, channel))
  }
}
