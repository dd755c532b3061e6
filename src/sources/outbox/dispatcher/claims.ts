/**
 * Looking for messages: fresh ones behind the last one found, suspects alone, those of a stream a few milliseconds together. Whoever
 * writes is told whether anybody waits to be woken.
 */
import { type Instant, later, microseconds } from '../../../core/clock.ts'
import { rest } from '../../../core/waiting.ts'
import type { Claimed } from '../../../core/work/work-table.ts'
import type { MessageTable } from '../sql/table.ts'
import type { DispatcherContext } from './dispatcher.ts'
import { type Delivery, mostClaims } from './outcome.ts'
import type { Settlements } from './settlements.ts'

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

export class Claims {
  readonly #context: DispatcherContext
  readonly #settlements: Settlements
  /** Resolves when nothing is held, or the dispatcher stops. */
  readonly #untilAlone: () => Promise<void>
  /** Rows that were claimed so often without ever being settled are suspect. */
  readonly #suspectFrom: number
  #freshFrom: Instant | null = null
  #fullLookAt: Instant | null = null
  #suspectLookAt: Instant | null = null
  /** The last claim was of a suspect, which may still be held. */
  #wasSuspect = false
  #gathers = false
  #movedAtMs = Number.NEGATIVE_INFINITY
  #waitingSaid: boolean | null = null
  #pollAt: Instant | null = null

  constructor(context: DispatcherContext, settlements: Settlements, untilAlone: () => Promise<void>) {
    this.#context = context
    this.#settlements = settlements
    this.#untilAlone = untilAlone
    this.#suspectFrom = Math.min(SUSPECT_CLAIMS, mostClaims(context.settings)) - 1
  }

  /** Claims what comes next: one suspect and one batch in turn, so that neither waits for all of the other. */
  async next(signal: AbortSignal): Promise<Claimed<Delivery>> {
    if (this.#gathers) await rest(GATHER_MS, signal)
    const followsSuspect = this.#wasSuspect
    // Nothing else is held while a suspect is.
    if (followsSuspect) await this.#untilAlone()
    const now = this.#context.clock.now()
    // Somebody else may have said that nobody waits, and ended.
    if (this.#pollAt !== null && now > this.#pollAt) this.#waitingSaid = null
    this.#pollAt = null
    if (!followsSuspect && (this.#suspectLookAt === null || now >= this.#suspectLookAt)) {
      const suspect = await this.suspect(signal)
      this.#wasSuspect = suspect.again === 'now'
      this.#suspectLookAt = this.#wasSuspect ? null : later(now, LOOK_US)
      if (this.#wasSuspect) return suspect
    }
    this.#wasSuspect = false
    if (signal.aborted) return this.#nothing()
    const claimed = await this.batch()
    // After this turn of a batch comes that of the next suspect, if there is one, and does not wait for a poll.
    const moved = followsSuspect || claimed.again === 'now'
    try {
      return { ...claimed, again: await this.#whenAgain(claimed, moved) }
    } catch (trouble) {
      return { ...claimed, trouble }
    }
  }

  /** Claims a batch; to be looked for again when something was there. */
  async batch(): Promise<Claimed<Delivery>> {
    const { settings, clock } = this.#context
    await this.#settlements.letGo()
    const table = await this.#context.table()
    const now = clock.now()
    if (this.#fullLookAt === null || now >= this.#fullLookAt) {
      this.#freshFrom = null
      this.#fullLookAt = later(now, LOOK_US)
    }
    for (;;) {
      const freshFrom = this.#freshFrom
      const { claimed, newestFresh } = await this.#claim(table, settings.batchSize, false)
      this.#freshFrom = claimed.jobs.length >= settings.batchSize ? newestFresh : null
      // Nothing behind the last one found: something before it may have been committed late.
      if (claimed.again === 'now' || freshFrom === null) return claimed
    }
  }

  /**
   * A message that ends its dispatcher takes the others of its batch with it, and must not make them look like it. So one
   * that was claimed in vain before is delivered alone: nothing else is held while it is.
   */
  async suspect(signal: AbortSignal): Promise<Claimed<Delivery>> {
    const { db, clock } = this.#context
    const table = await this.#context.table()
    if (!(await table.suspectsWait(db, clock.now(), this.#suspectFrom))) return this.#nothing()
    await this.#untilAlone()
    if (signal.aborted) return this.#nothing()
    const { claimed } = await this.#claim(table, 1, true)
    return claimed
  }

  async #claim(table: MessageTable, limit: number, suspects: boolean) {
    const { db, settings, clock, claimedBy, say } = this.#context
    const now = clock.now()
    const until = later(now, microseconds(settings.claimSeconds))
    const { messages, parked, newestFresh } = await table.claim(db, {
      ...{ now, claimedBy, claimedUntil: until, limit, onDead: settings.onDead },
      ...{ freshFrom: suspects ? null : this.#freshFrom, suspectFrom: this.#suspectFrom, suspects },
    })
    // What they waited for may have been settled while they were parked.
    this.#settlements.look(parked)
    if (messages.length > 0) say('FETCH', { count: messages.length })
    const jobs = messages.map((message) => this.#settlements.hold(message))
    const again = messages.length + parked.length > 0 ? 'now' : null
    return { claimed: { jobs, until, again } as const, newestFresh }
  }

  #nothing(): Claimed<Delivery> {
    return { jobs: [], until: this.#context.clock.now(), again: null }
  }

  /**
   * Messages that keep coming a few at a time are claimed every 10 ms, and their writers need not wake anybody: claims of
   * one row each took half of the writers' speed.
   */
  async #whenAgain({ jobs }: Claimed<Delivery>, moved: boolean): Promise<'now' | Instant> {
    const { clock, settings } = this.#context
    const nowMs = performance.now()
    const isStream = nowMs - this.#movedAtMs < STREAM_MS
    if (moved) this.#movedAtMs = nowMs
    // A full batch has another one behind it; and one message alone makes no stream.
    this.#gathers = isStream && this.#freshFrom === null && (moved || this.#waitingSaid === false)
    if (this.#gathers || jobs.length >= settings.batchSize) await this.#sayWaiting(false)
    if (this.#gathers || moved) return 'now'
    if (this.#waitingSaid !== true) {
      await this.#sayWaiting(true)
      // What was committed before that was not announced: one more look.
      return 'now'
    }
    this.#pollAt = later(clock.now(), microseconds(settings.pollIntervalSeconds))
    return this.#pollAt
  }

  async #sayWaiting(waiting: boolean): Promise<void> {
    if (this.#waitingSaid === waiting) return
    const table = await this.#context.table()
    await table.setWaiting(this.#context.db, waiting)
    this.#waitingSaid = waiting
  }
}
