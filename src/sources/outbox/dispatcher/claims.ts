/**
 * Finds messages for a dispatcher: fresh ones behind the last found, suspects alone, streams gathered for a few
 * milliseconds. Tells writers whether anybody waits to be woken.
 */
import { type Instant, later, microseconds } from '../../../core/clock.ts'
import { rest } from '../../../core/waiting.ts'
import type { Claimed } from '../../../core/work/work-table.ts'
import type { MessageTable } from '../sql/table.ts'
import type { DispatcherContext } from './dispatcher.ts'
import { type Delivery, mostClaims } from './outcome.ts'
import type { Settlements } from './settlements.ts'

/**
 * How often fresh rows are looked for from the very beginning, for rows that were committed late, and how often
 * suspects are, however busy the dispatcher is.
 */
const LOOK_US = 2_000_000n
/** Messages within this time of each other are a stream, and are gathered for so long. */
const STREAM_MS = 100
const GATHER_MS = 10
/** A message is suspect once two dispatchers ended while they held it. */
const SUSPECT_CLAIMS = 3

export class Claims {
  readonly #context: DispatcherContext
  readonly #settlements: Settlements
  readonly #untilAlone: () => Promise<void>
  /** Claims without a settlement that make a row suspect. */
  readonly #suspectFrom: number
  #freshFrom: Instant | null = null
  #fullLookAt: Instant | null = null
  #suspectLookAt: Instant | null = null
  /** The last claim was of a suspect. */
  #wasSuspect = false
  #gathers = false
  #movedAtMs = Number.NEGATIVE_INFINITY
  #announced: boolean | null = null
  #pollAt: Instant | null = null

  constructor(context: DispatcherContext, settlements: Settlements, untilAlone: () => Promise<void>) {
    this.#context = context
    this.#settlements = settlements
    this.#untilAlone = untilAlone
    this.#suspectFrom = Math.min(SUSPECT_CLAIMS, mostClaims(context.settings)) - 1
  }

  /** One suspect and one batch in turn, so that neither waits for all of the other. */
  async next(signal: AbortSignal): Promise<Claimed<Delivery>> {
    if (this.#gathers) await rest(GATHER_MS, signal)
    const followsSuspect = this.#wasSuspect
    if (followsSuspect) await this.#untilAlone()
    const now = this.#context.clock.now()
    // Another dispatcher may have said that nobody waits, and ended.
    if (this.#pollAt !== null && now > this.#pollAt) this.#announced = null
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
    // The turn of the next suspect does not wait for a poll.
    const moved = followsSuspect || claimed.again === 'now'
    try {
      return { ...claimed, again: await this.#whenAgain(claimed, moved) }
    } catch (trouble) {
      return { ...claimed, trouble }
    }
  }

  async batch(): Promise<Claimed<Delivery>> {
    const { settings, clock } = this.#context
    await this.#settlements.releaseMoved()
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
      // Something before the last one found may have been committed late.
      if (claimed.again === 'now' || freshFrom === null) return claimed
    }
  }

  /**
   * A message that ends its dispatcher must not make the others of its batch look like it: a suspect is delivered while
   * nothing else is held.
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
    const { db, settings, clock, claimedBy, logEvent } = this.#context
    const now = clock.now()
    const until = later(now, microseconds(settings.claimSeconds))
    const { messages, parked, newestFresh } = await table.claim(db, {
      ...{ now, claimedBy, claimedUntil: until, limit, onDead: settings.onDead },
      ...{ freshFrom: suspects ? null : this.#freshFrom, suspectFrom: this.#suspectFrom, suspects },
    })
    // The message before them may have been settled meanwhile.
    this.#settlements.look(parked)
    if (messages.length > 0) logEvent('FETCH', { count: messages.length })
    const jobs = messages.map((message) => this.#settlements.hold(message))
    const again = messages.length + parked.length > 0 ? 'now' : null
    return { claimed: { jobs, until, again } as const, newestFresh }
  }

  #nothing(): Claimed<Delivery> {
    return { jobs: [], until: this.#context.clock.now(), again: null }
  }

  /**
   * Streams are claimed every 10 ms, and their writers need not wake anybody: claims of one row each took half of the
   * writers' speed.
   */
  async #whenAgain({ jobs }: Claimed<Delivery>, moved: boolean): Promise<'now' | Instant> {
    const { clock, settings } = this.#context
    const nowMs = performance.now()
    const isStream = nowMs - this.#movedAtMs < STREAM_MS
    if (moved) this.#movedAtMs = nowMs
    // A full batch has another behind it, and a single message is no stream.
    this.#gathers = isStream && this.#freshFrom === null && (moved || this.#announced === false)
    if (this.#gathers || jobs.length >= settings.batchSize) await this.#announceWaiting(false)
    if (this.#gathers || moved) return 'now'
    if (this.#announced !== true) {
      await this.#announceWaiting(true)
      // Earlier commits were not announced: one more look.
      return 'now'
    }
    this.#pollAt = later(clock.now(), microseconds(settings.pollIntervalSeconds))
    return this.#pollAt
  }

  async #announceWaiting(waiting: boolean): Promise<void> {
    if (this.#announced === waiting) return
    const table = await this.#context.table()
    await table.setWaiting(this.#context.db, waiting)
    this.#announced = waiting
  }
}
