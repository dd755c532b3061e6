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
import { backoffDelayMs } from '../core/backoff.ts'
import { Changes } from '../core/changes.ts'
import { type Instant, later } from '../core/clock.ts'
import { Deliveries, mostClaims, seconds } from './deliveries.ts'
import { type DispatcherParts, OUTAGE } from './dispatcher-parts.ts'
import { Hands } from './hands.ts'
import { Oversight } from './oversight.ts'
import { Settling } from './settling.ts'
import type { MessageTable } from './sql/table.ts'
import { type WorkerLog, workerLog } from './worker-log.ts'

export type { DispatcherParts } from './dispatcher-parts.ts'

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
/** A message that was in the hands of two dispatchers which ended is suspect. */
const SUSPECT_CLAIMS = 3

export class Dispatcher {
  readonly #parts: DispatcherParts
  readonly #say: WorkerLog
  /** Unique among all dispatchers there ever were: claims are known by it. */
  readonly #me: string
  readonly #hands = new Hands()
  readonly #changes = new Changes()
  readonly #settling: Settling
  readonly #deliveries: Deliveries
  readonly #oversight: Oversight
  #claiming: Promise<void> | undefined
  #draining: Promise<unknown> = Promise.resolve()
  #stopping = false
  #woken = false
  #movedAtMs = Number.NEGATIVE_INFINITY
  #waitingSaid: boolean | null = null
  #freshFrom: Instant | null = null
  #fullLookAt: Instant | null = null
  #suspectLookAt: Instant | null = null

  constructor(parts: DispatcherParts) {
    this.#parts = parts
    this.#me = `${parts.name}-${randomUUID()}`
    this.#say = workerLog(parts.log, parts.name)
    const context = { hands: this.#hands, changes: this.#changes, say: this.#say, claimedBy: this.#me }
    this.#settling = new Settling(parts, { ...context, onReleased: () => this.wake() })
    this.#deliveries = new Deliveries(parts, { ...context, settling: this.#settling })
    this.#oversight = new Oversight(parts.clock, this.#hands, {
      claimSeconds: parts.settings.claimSeconds,
      renew: (ids, until) => this.#renew(ids, until),
    })
  }

  /** Begins to deliver. Resolves once the table was looked at; rejects when it is no outbox. */
  async start(): Promise<void> {
    await this.#parts.table()
    this.#claiming ??= this.#claimForEver()
  }

  /** Something was committed: looks for it at once. */
  wake(): void {
    this.#woken = true
    this.#changes.signal()
  }

  /** Delivers everything that is due now, and what becomes due by that; then resolves. */
  drain(): Promise<void> {
    const drained = this.#drain()
    this.#draining = Promise.allSettled([this.#draining, drained])
    return drained
  }

  /** Claims nothing more, gives back what was not begun, and waits for what was. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#deliveries.stop()
    this.#changes.signal()
    await Promise.all([this.#claiming, this.#draining])
    this.#deliveries.giveBack()
    const haveEnded = () => this.#deliveries.active === 0
    await this.#changes.within(STOP_MS, haveEnded)
    this.#deliveries.cutShort()
    await this.#changes.until(haveEnded)
    await this.#settling.stop()
    this.#oversight.stop()
    await this.#parts.transport.close?.()
  }

  async #drain(): Promise<void> {
    const isIdle = () => this.#hands.size === 0 && this.#settling.isDone
    while (!this.#stopping) {
      const moved = await this.#claimBatch()
      await this.#changes.until(() => this.#stopping || isIdle())
      if (!moved && !(await this.#claimSuspect())) return
    }
  }

  async #claimForEver(): Promise<void> {
    for (let failures = 0; !this.#stopping; ) {
      try {
        await this.#changes.until(() => this.#stopping || this.#hasRoom())
        if (this.#stopping) return
        this.#woken = false
        // One suspect and one batch in turn: neither waits for all of the other.
        const moved = [await this.#claimSuspectInTime(), await this.#claimBatch()]
        failures = 0
        if (!(await this.#gathers(moved.includes(true)))) await this.#rest()
      } catch (error) {
        failures += 1
        const { log, name } = this.#parts
        log.error({ err: error, outbox: name }, 'outbox messages could not be claimed')
        await this.#changes.within(backoffDelayMs(failures, OUTAGE), () => this.#stopping)
      }
    }
  }

  /** Room for a whole batch, so that batches stay large; one is held while the next is claimed. */
  #hasRoom(): boolean {
    return this.#hands.size <= this.#parts.settings.batchSize
  }

  /** Claims a batch and begins to deliver it. False when nothing was there. */
  async #claimBatch(): Promise<boolean> {
    const { settings, clock } = this.#parts
    const table = await this.#parts.table()
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
    const { db, settings, clock } = this.#parts
    const now = clock.now()
    const claimedUntil = later(now, seconds(settings.claimSeconds))
    const claim = await table.claim(db, {
      now,
      claimedBy: this.#me,
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
      this.#say('FETCH', { count: messages.length })
      const taken = this.#deliveries.take(messages, claimedUntil)
      this.#oversight.watch()
      await taken
    }
    return claim
  }

  /** Rows that were claimed so often without ever being settled are suspect. */
  #suspectFrom(): number {
    return Math.min(SUSPECT_CLAIMS, mostClaims(this.#parts)) - 1
  }

  async #claimSuspectInTime(): Promise<boolean> {
    const now = this.#parts.clock.now()
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
    const { db, clock } = this.#parts
    const table = await this.#parts.table()
    if (!(await table.suspectsWait(db, clock.now(), this.#suspectFrom()))) return false
    const isAlone = () => this.#stopping || this.#hands.size === 0
    await this.#changes.until(isAlone)
    if (this.#stopping) return false
    const { messages, parked } = await this.#claim(table, 1, true)
    await this.#changes.until(isAlone)
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
    await this.#sayWaiting(await this.#parts.table(), false)
    await this.#changes.within(GATHER_MS, () => this.#stopping)
    return true
  }

  /** Gives the ids that are still ours; null when the store does not tell. */
  async #renew(ids: readonly string[], until: Instant): Promise<ReadonlySet<string> | null> {
    const { db, log, name } = this.#parts
    try {
      return await (await this.#parts.table()).renew(db, ids, this.#me, until)
    } catch (error) {
      log.warn({ err: error, outbox: name }, 'claims of outbox messages could not be renewed')
      return null
    }
  }

  /** Waits for a message, at most until the next poll. */
  async #rest(): Promise<void> {
    const { clock, settings } = this.#parts
    if (this.#waitingSaid !== true) {
      await this.#sayWaiting(await this.#parts.table(), true)
      // What was committed before that was not announced: one more look.
      this.#woken = true
    }
    const alarm = clock.alarm(later(clock.now(), seconds(settings.pollIntervalSeconds)), () => {
      // Somebody else may have said that nobody waits, and ended.
      this.#waitingSaid = null
      this.wake()
    })
    await this.#changes.until(() => this.#woken || this.#stopping)
    alarm.cancel()
  }

  async #sayWaiting(table: MessageTable, waiting: boolean): Promise<void> {
    if (this.#waitingSaid === waiting) return
    await table.setWaiting(this.#parts.db, waiting)
    this.#waitingSaid = waiting
  }
}
