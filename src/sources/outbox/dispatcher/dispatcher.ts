/**
 * The dispatcher: claims messages in short transactions, delivers them outside of any, and settles what came of it in
 * batches. Any number of them may work on one table; each can be killed at any time.
 *
 *   claim ──► deliver ──► processed
 *     ▲          ├──► failed ── waits ──┐      the claim of a dispatcher that died lapses, and the
 *     │          └──► dead (a letter)   │      message is delivered again with the same key
 *     └─────────────────────────────────┘
 *
 * Claiming, delivering and settling go on at the same time: the next batch is claimed while one is being delivered, and
 * what was delivered meanwhile is settled together. This file claims; deliveries.ts and settling.ts do the rest.
 */
import { randomUUID } from 'node:crypto'
import { backoffDelayMs } from '../../../core/backoff.ts'
import { type Clock, type Instant, later, microseconds } from '../../../core/clock.ts'
import type { Log } from '../../../core/log.ts'
import type { Rounds } from '../../../core/rounds.ts'
import { Signal } from '../../../core/signal.ts'
import type { Database } from '../../../store/database.ts'
import type { StoreUrl } from '../../../store/store-url.ts'
import type { OutboxMeter } from '../served/meter.ts'
import type { Purged } from '../sql/purge.ts'
import type { MessageTable } from '../sql/table.ts'
import type { LocalTransport, Transport } from '../transports/transport.ts'
import { announceCommits, type CommitWatch } from './commit-watch.ts'
import { Deliveries, mostClaims } from './deliveries.ts'
import { HeldMessages } from './held.ts'
import { Maintenance } from './maintenance.ts'
import type { DispatcherSettings } from './options.ts'
import { Renewals } from './renewals.ts'
import { OUTAGE, Settling } from './settling.ts'
import { type WorkerLog, workerLog } from './worker-log.ts'

/** What a dispatcher works with. */
export interface DispatcherParts {
  readonly name: string
  readonly db: Database
  /** Where `db` lies: commits to a file are noticed there. */
  readonly store: StoreUrl
  /** Looks at the table; asked again after a failure. */
  readonly table: () => Promise<MessageTable>
  readonly transport: Transport | LocalTransport
  readonly settings: DispatcherSettings
  readonly clock: Clock
  readonly log: Log
  readonly meter: OutboxMeter
  /** Told when rows died, or arrived after they had died: the office has to know. */
  readonly onLetterDue?: () => void
  /** Called at the very end. */
  readonly onStopped?: () => Promise<void>
}

/** What the parts of a dispatcher share. */
export interface DispatcherContext extends DispatcherParts {
  readonly held: HeldMessages
  readonly changes: Signal
  readonly say: WorkerLog
  /** Unique among all dispatchers there ever were: claims are known by it. */
  readonly claimedBy: string
}

/** Deliveries get this long to end when the dispatcher is stopped; then they are cut short. */
const STOP_MS = 4_000
/**
 * Fresh rows are looked for behind the last one found; so often from the very beginning, for rows that were committed
 * late. And so often for suspects, however busy the dispatcher is.
 */
const LOOK_US = 2_000_000n
/** Messages that follow each other within this time are a stream; those of a stream are gathered for this long. */
const STREAM_MS = 100
const GATHER_MS = 10
/** A message that was held by two dispatchers which ended is suspect. */
const SUSPECT_CLAIMS = 3

export class Dispatcher {
  readonly #context: DispatcherContext
  readonly #settling: Settling
  readonly #deliveries: Deliveries
  readonly #renewals: Renewals
  readonly #maintenance: Maintenance
  #watch: CommitWatch | undefined
  #claiming: Promise<void> | undefined
  #draining: Promise<unknown> = Promise.resolve()
  #stopped: Promise<void> | undefined
  #woken = false
  #movedAtMs = Number.NEGATIVE_INFINITY
  #waitingSaid: boolean | null = null
  #freshFrom: Instant | null = null
  #fullLookAt: Instant | null = null
  #suspectLookAt: Instant | null = null

  constructor(parts: DispatcherParts) {
    const { name, log } = parts
    this.#context = {
      ...parts,
      held: new HeldMessages(),
      changes: new Signal(),
      say: workerLog(log, name),
      claimedBy: `${name}-${randomUUID()}`,
    }
    const wake = () => this.wake()
    this.#settling = new Settling(this.#context, wake)
    this.#deliveries = new Deliveries(this.#context, this.#settling)
    this.#renewals = new Renewals(this.#context)
    this.#maintenance = new Maintenance(parts, wake)
  }

  /** Begins to deliver. Resolves once the table was looked at; rejects when it is no outbox. */
  async start(): Promise<void> {
    const { layout } = await this.#context.table()
    this.#claiming ??= this.#claimForEver()
    this.#watch ??= await announceCommits(this.#context, layout.channel, () => this.wake())
    this.#maintenance.start()
  }

  /** What is done every so often, for whoever watches over that. */
  get rounds(): readonly Rounds[] {
    return [...this.#maintenance.rounds, ...(this.#watch?.rounds ?? [])]
  }

  /** Something was committed: looks for it at once. */
  wake(): void {
    this.#woken = true
    this.#context.changes.notify()
  }

  /** Delivers everything that is due now, and what becomes due by that; then resolves. */
  drain(): Promise<void> {
    const drained = this.#drain()
    this.#draining = Promise.allSettled([this.#draining, drained])
    return drained
  }

  purge(): Promise<Purged> {
    return this.#maintenance.purge()
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    this.#watch?.stop()
    await Promise.all([this.#stopDelivering(), this.#maintenance.stop()])
    await this.#context.onStopped?.()
  }

  /** Claims nothing more, gives back what was not begun, and waits for what was. */
  async #stopDelivering(): Promise<void> {
    const { changes, transport } = this.#context
    this.#deliveries.stop()
    changes.notify()
    await Promise.all([this.#claiming, this.#draining])
    this.#deliveries.giveBack()
    const haveEnded = () => this.#deliveries.active === 0
    await changes.within(STOP_MS, haveEnded)
    this.#deliveries.cutShort()
    await changes.until(haveEnded)
    await this.#settling.stop()
    this.#renewals.stop()
    await transport.close?.()
  }

  get #stopping(): boolean {
    return this.#stopped !== undefined
  }

  async #drain(): Promise<void> {
    const isIdle = () => this.#context.held.size === 0 && this.#settling.isDone
    while (!this.#stopping) {
      const moved = await this.#claimBatch()
      await this.#context.changes.until(() => this.#stopping || isIdle())
      if (moved || (await this.#claimSuspect())) continue
      if (!(await this.#maintenance.lookAtLines())) return
    }
  }

  async #claimForEver(): Promise<void> {
    for (let failures = 0; !this.#stopping; ) {
      try {
        const { held, changes, settings } = this.#context
        // Room for a whole batch, so that batches stay large; one is held while the next is claimed.
        await changes.until(() => this.#stopping || held.size <= settings.batchSize)
        if (this.#stopping) return
        this.#woken = false
        // One suspect and one batch in turn: neither waits for all of the other.
        const moved = [await this.#claimSuspectInTime(), await this.#claimBatch()]
        failures = 0
        if (!(await this.#gathers(moved.includes(true)))) await this.#rest()
      } catch (error) {
        failures += 1
        const { log, name } = this.#context
        log.error({ err: error, outbox: name }, 'outbox messages could not be claimed')
        await this.#context.changes.within(backoffDelayMs(failures, OUTAGE), () => this.#stopping)
      }
    }
  }

  /** Claims a batch and begins to deliver it. False when nothing was there. */
  async #claimBatch(): Promise<boolean> {
    const { settings, clock } = this.#context
    const table = await this.#context.table()
    const now = clock.now()
    if (this.#fullLookAt === null || now >= this.#fullLookAt) {
      this.#freshFrom = null
      this.#fullLookAt = later(now, LOOK_US)
    }
    for (;;) {
      const freshFrom = this.#freshFrom
      const { messages, parked, newestFresh } = await this.#claim(table, settings.batchSize, false)
      const isFull = messages.length >= settings.batchSize
      this.#freshFrom = isFull ? newestFresh : null
      if (isFull) await this.#sayWaiting(table, false)
      if (messages.length + parked.length > 0) return true
      // Nothing behind the last one found: something before it may have been committed late.
      if (freshFrom === null || this.#stopping) return false
    }
  }

  async #claim(table: MessageTable, limit: number, suspects: boolean) {
    const { db, settings, clock, claimedBy, say } = this.#context
    const now = clock.now()
    const claimedUntil = later(now, microseconds(settings.claimSeconds))
    const claim = await table.claim(db, {
      now,
      claimedBy,
      claimedUntil,
      limit,
      freshFrom: suspects ? null : this.#freshFrom,
      onDead: settings.onDead,
      suspectFrom: this.#suspectFrom(),
      suspects,
    })
    const { messages, parked } = claim
    // What they waited for may have been settled while they were parked.
    this.#settling.look(parked)
    if (messages.length > 0) {
      say('FETCH', { count: messages.length })
      const taken = this.#deliveries.take(messages, claimedUntil)
      this.#renewals.watch()
      await taken
    }
    return claim
  }

  /** Rows that were claimed so often without ever being settled are suspect. */
  #suspectFrom(): number {
    return Math.min(SUSPECT_CLAIMS, mostClaims(this.#context.settings)) - 1
  }

  async #claimSuspectInTime(): Promise<boolean> {
    const now = this.#context.clock.now()
    if (this.#suspectLookAt !== null && now < this.#suspectLookAt) return false
    const found = await this.#claimSuspect()
    this.#suspectLookAt = found ? null : later(now, LOOK_US)
    return found
  }

  /**
   * A message that ends its dispatcher takes the others of its batch with it, and must not make them look like it. So one
   * that was claimed in vain before is delivered alone: nothing else is held while it is. True when there was one.
   */
  async #claimSuspect(): Promise<boolean> {
    const { db, clock } = this.#context
    const table = await this.#context.table()
    if (!(await table.suspectsWait(db, clock.now(), this.#suspectFrom()))) return false
    const isAlone = () => this.#stopping || this.#context.held.size === 0
    await this.#context.changes.until(isAlone)
    if (this.#stopping) return false
    const { messages, parked } = await this.#claim(table, 1, true)
    await this.#context.changes.until(isAlone)
    return messages.length + parked.length > 0
  }

  /**
   * Messages that keep coming a few at a time are claimed every 10 ms, and their writers need not wake anybody: claims of
   * one row each took half of the writers' speed. False when nothing came for a while.
   */
  async #gathers(moved: boolean): Promise<boolean> {
    const nowMs = performance.now()
    const isStream = nowMs - this.#movedAtMs < STREAM_MS
    if (moved) this.#movedAtMs = nowMs
    // A full batch has another one behind it; and one message alone makes no stream.
    if (!isStream || this.#freshFrom !== null || (!moved && this.#waitingSaid !== false)) return moved
    await this.#sayWaiting(await this.#context.table(), false)
    await this.#context.changes.within(GATHER_MS, () => this.#stopping)
    return true
  }

  /** Waits for a message, at most until the next poll. */
  async #rest(): Promise<void> {
    const { clock, settings } = this.#context
    if (this.#waitingSaid !== true) {
      await this.#sayWaiting(await this.#context.table(), true)
      // What was committed before that was not announced: one more look.
      this.#woken = true
    }
    const alarm = clock.alarm(later(clock.now(), microseconds(settings.pollIntervalSeconds)), () => {
      // Somebody else may have said that nobody waits, and ended.
      this.#waitingSaid = null
      this.wake()
    })
    await this.#context.changes.until(() => this.#woken || this.#stopping)
    alarm.cancel()
  }

  async #sayWaiting(table: MessageTable, waiting: boolean): Promise<void> {
    if (this.#waitingSaid === waiting) return
    await table.setWaiting(this.#context.db, waiting)
    this.#waitingSaid = waiting
  }
}
