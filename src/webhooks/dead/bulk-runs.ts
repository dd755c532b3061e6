/**
 * Requeuing or purging all dead jobs of a consumer: in batches, each a transaction of its own, from the oldest job upward to the newest
 * that was dead at the start, so that it ends also while jobs keep dying. A run is a row: whichever server is at it renews its lease
 * with every batch, and what a server leaves behind is taken up by another.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Alarm, type Clock, later } from '../../core/clock.ts'
import { failure } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Xid, Xids } from '../../core/xid.ts'
import type { Database } from '../../db/database.ts'
import { inOffice } from '../../letters/work.ts'
import { readDeadCounts } from '../dead-counts.ts'
import type { WebhookSettings } from '../settings.ts'
import type { Consumer } from '../webhook.ts'
import { type BatchOutcome, runBatch } from './run-batch.ts'
import {
  type BulkKind,
  type BulkRun,
  insertRun,
  type Lease,
  leaveRun,
  newestDead,
  newestRuns,
  readRun,
  runsLeft,
  takeRun,
} from './run-rows.ts'

export { BULK_KINDS, type BulkKind, type BulkRun } from './run-rows.ts'

export interface BulkRunsOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly xids: Xids
  readonly settings: WebhookSettings
  /** Jobs of these push consumers are ready; called after the commit. */
  readonly onJobs: (consumers: ReadonlySet<number>) => void
}

/** How long a run is left alone by others after its last batch. */
const LEASE_US = 30_000_000n
/** How often a server looks for runs that nobody is at. */
const RESUME_EVERY_US = 5_000_000n
/** Runs that one look takes up. */
const MOST_RESUMED = 10
/** How long a caller waits for a requeue that goes on without it. */
const WAIT_US = 1_000_000n
/** How often a run that another server took over is looked at. */
const LOOK_EVERY_US = 1_000_000n
/**
 * What the store is left to others between two batches: as long as a batch took, and something in any case. With a third of that
 * another consumer got 70% of its deliveries during a purge, now 84%.
 */
const SHORTEST_REST_MS = 2

export class BulkRuns {
  readonly #options: BulkRunsOptions
  readonly #owner = crypto.randomUUID()
  readonly #stopped = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #waits = new Set<() => void>()
  #alarm: Alarm | undefined

  constructor(options: BulkRunsOptions) {
    this.#options = options
  }

  /** Begins to resume what others left. */
  start(): void {
    const { clock, log } = this.#options
    const nextAt = later(clock.now(), RESUME_EVERY_US)
    this.#track(this.#resume())
      .catch((error: unknown) =>
        log.warn({ err: error }, 'bulk runs were not looked for; the next round tries again'),
      )
      .finally(() => {
        if (!this.#stopped.signal.aborted) this.#alarm = clock.alarm(nextAt, () => this.start())
      })
  }

  /** Ends after the batch at hand; what is left is resumed by another server, or at the next start. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#alarm?.cancel()
    for (const end of this.#waits) end()
    await Promise.allSettled([...this.#underWay])
  }

  /** Resolves once this server is at no run. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  /** Requeues all dead jobs of a consumer; returns when that is done or, after a second, while it goes on. */
  async requeueAll(consumer: Consumer, actor: string): Promise<void> {
    const id = await this.#begin('requeue', consumer, actor)
    if (id === null) return
    // From here on it is durable: whatever happens to this server, it will be done.
    const walk = this.#walkInBackground(id)
    const patience = this.#wait(WAIT_US)
    await Promise.race([walk, patience.over])
    patience.end()
  }

  /** Erases all dead jobs of a consumer whose attempts are used up; gives how many. */
  async purge(consumer: Consumer, actor: string): Promise<number> {
    const id = await this.#begin('purge', consumer, actor)
    if (id === null) return 0
    await this.#track(this.#walk(id))
    for (;;) {
      const run = await this.#options.db.session('webhooks.readRun', (session) => readRun(session, id))
      // Gone with its consumer, which has no jobs then.
      if (run === null) return 0
      if (run.finishedAt !== null) return run.done
      if (this.#stopped.signal.aborted) throw failure('service_stopping')
      // Another server goes on with it.
      await this.#wait(LOOK_EVERY_US).over
    }
  }

  /** The newest runs. */
  list(limit: number): Promise<readonly BulkRun[]> {
    return this.#options.db.session('webhooks.listRuns', (session) => newestRuns(session, limit))
  }

  /** Writes down what is to be done; null when there is nothing. */
  #begin(kind: BulkKind, { number }: Consumer, actor: string): Promise<Xid | null> {
    const { db, clock, xids } = this.#options
    return db.transaction('webhooks.beginRun', async (tx) => {
      const last = await newestDead(tx, number)
      if (last === null) return null
      const counts = await readDeadCounts(tx)
      const expected = counts.find(({ consumer }) => consumer === number)?.deadCount ?? 0
      const [id, startedAt] = [xids.next(), clock.now()]
      await insertRun(tx, { id, kind, consumer: number, actor, startedAt, expected, last }, this.#lease())
      return id
    })
  }

  #lease(): Lease {
    return { owner: this.#owner, until: later(this.#options.clock.now(), LEASE_US) }
  }

  /** Takes up what nobody is at. */
  async #resume(): Promise<void> {
    const { db, clock, log } = this.#options
    const left = await db.session('webhooks.runsLeft', (session) =>
      runsLeft(session, clock.now(), MOST_RESUMED),
    )
    for (const id of left) {
      const isTaken = await db.session('webhooks.takeRun', (session) =>
        takeRun(session, id, this.#lease(), clock.now()),
      )
      if (!isTaken) continue
      log.info({ run: id }, 'bulk run taken up')
      void this.#walkInBackground(id)
    }
  }

  /** Goes on with a run without anybody who would hear of its failure: it is taken up again when its lease is over. */
  #walkInBackground(id: Xid): Promise<void> {
    return this.#track(this.#walk(id)).catch((error: unknown) => {
      if (this.#stopped.signal.aborted) return
      this.#options.log.warn({ err: error, run: id }, 'bulk run interrupted; it will be taken up again')
    })
  }

  /** Does batch after batch, until the run is done or another server's. */
  async #walk(id: Xid): Promise<void> {
    const { db, clock, settings, onJobs, log } = this.#options
    const { signal } = this.#stopped
    for (;;) {
      if (signal.aborted) {
        await db.session('webhooks.leaveRun', (session) => leaveRun(session, id, this.#owner))
        return
      }
      const startedMs = performance.now()
      const outcome: BatchOutcome = await inOffice(db, clock, 'webhooks.bulkBatch', (work) =>
        runBatch(work, id, {
          lease: this.#lease(),
          size: settings.dlq.batchSize,
          maxRetry: settings.delivery.maxRetry,
          onJobs,
        }),
      )
      if (outcome === 'finished') log.info({ run: id }, 'bulk run finished')
      if (outcome !== 'more') return
      // On SQLite nothing of a batch leaves the event loop; without a pause no delivery would go on meanwhile.
      const restMs = Math.max(SHORTEST_REST_MS, performance.now() - startedMs)
      await pause(restMs, undefined, { signal }).catch(() => {})
    }
  }

  /** `over` resolves after this time, when it is ended, and when this is stopped. */
  #wait(us: bigint): { readonly over: Promise<void>; readonly end: () => void } {
    const { clock } = this.#options
    const { promise, resolve } = Promise.withResolvers<void>()
    const end = (): void => {
      alarm.cancel()
      this.#waits.delete(end)
      resolve()
    }
    const alarm = clock.alarm(later(clock.now(), us), end)
    this.#waits.add(end)
    if (this.#stopped.signal.aborted) end()
    return { over: promise, end }
  }

  #track<T>(work: Promise<T>): Promise<T> {
    const tracked: Promise<unknown> = work.catch(() => {}).finally(() => this.#underWay.delete(tracked))
    this.#underWay.add(tracked)
    return work
  }
}
