/**
 * Runs due work in every queue: right after start, then whenever a deadline passes. Deadlines are read from the store, so any server
 * finishes what another one began.
 */
import { backoffDelayMs } from '../../core/backoff.ts'
import { type Clock, type Instant, later, microseconds } from '../../core/clock.ts'
import { BartlebyError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { Rounds, type Service } from '../../core/rounds.ts'
import { SystemClock } from '../../core/system-clock.ts'
import { sleep } from '../../core/waiting.ts'
import type { Database } from '../../store/database.ts'
import { type DueBatch, type DueWork, findDue, findNextDeadline } from '../sql/due.ts'
import { parseRuns } from '../sql/lease.ts'
import type { QueueLoop } from './loop.ts'

/** How often the store is asked for deadlines of other servers; each look reaches twice as far. */
const LOOK_US = 1_000_000n
const HORIZON_US = 2_000_000n
/** Items held for a missing dead queue have no deadline; sweeps try them this often. */
const HELD_EVERY_US = 5_000_000n

/** Distance between sweeps under load, so that leases ending in a row share one. */
const SWEEP_DISTANCE_MS = 20

/** Rows of each kind per pass: what one transaction applies in some ten milliseconds. */
const PASS_LIMIT = 1_000
const PASS_LEASED = 8_000

const BACKOFF = { baseMs: 500, factor: 1.5, maxMs: 5_000, jitter: 0.2 }

interface SweeperContext {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  /** null when the queue was deleted. */
  readonly loopOfPart: (part: number) => Promise<QueueLoop | null>
  readonly pausedParts: () => number[]
}

export class Sweeper implements Service {
  readonly name = 'queues.sweep'
  readonly #context: SweeperContext
  readonly #orphans = new Set<number>()
  readonly #sweeps: Rounds
  readonly #looks: Rounds
  /** Aborted while somebody waits for a sweep, which then keeps no distance. */
  #hurry = new AbortController()
  #lastEndedMs = 0
  #failure: { readonly error: unknown } | null = null

  constructor(context: SweeperContext) {
    this.#context = context
    const { clock, log } = context
    this.#sweeps = new Rounds({
      ...{ name: this.name, clock, outageClock: new SystemClock(), log },
      everyUs: (failures) =>
        failures === 0 ? HELD_EVERY_US : microseconds(backoffDelayMs(failures, BACKOFF) / 1_000),
      act: (signal) => this.#sweepAtDistance(signal),
      trouble: 'sweep failed; it is tried again',
      level: 'error',
    })
    this.#looks = new Rounds({
      ...{ name: 'queues.ahead', clock, log, everyUs: LOOK_US, isFirstLater: true },
      act: () => this.#lookAhead(),
      trouble: 'deadlines could not be looked for; the next round tries again',
      level: 'debug',
    })
  }

  get rounds(): readonly Rounds[] {
    return [this.#sweeps, this.#looks]
  }

  start(): void {
    for (const rounds of this.rounds) rounds.start()
  }

  async stop(): Promise<void> {
    await Promise.all(this.rounds.map((rounds) => rounds.stop()))
  }

  /** Expects a deadline; those beyond the horizon are found by looking ahead. */
  expectAt(deadline: Instant): void {
    if (deadline <= later(this.#context.clock.now(), HORIZON_US)) this.#sweeps.expect(deadline)
  }

  /** Sweeps soon, and once more if a sweep is running. */
  sweep(): Promise<void> {
    return this.#sweeps.now()
  }

  /** Runs everything due, held items included; resolves when it is durable. */
  async sweepNow(): Promise<void> {
    this.#hurry.abort()
    await this.sweep()
    if (this.#failure !== null) throw this.#failure.error
  }

  /** Hands a paused queue its due work, for the cycle it runs when released. */
  async sweepInto(loop: QueueLoop): Promise<void> {
    const parts = new Set(loop.queue.partitions.map(({ part }) => part))
    const others = this.#context.pausedParts().filter((part) => !parts.has(part))
    const due = await this.#findDue(others, null)
    const mine = {
      leases: firstBatches(due.leases.filter(({ part }) => parts.has(part))),
      expired: due.expired.filter(({ part }) => parts.has(part)),
      scheduled: due.scheduled.filter(({ part }) => parts.has(part)),
      held: [],
    }
    // Not awaited: it waits for the release. A failure leaves the work to the next sweep.
    loop.sweep(mine).catch(() => {})
  }

  async #sweepAtDistance(signal: AbortSignal): Promise<void> {
    const distanceMs = this.#lastEndedMs + SWEEP_DISTANCE_MS - performance.now()
    if (distanceMs > 0) await sleep(distanceMs, AbortSignal.any([signal, this.#hurry.signal]))
    const isAsked = this.#hurry.signal.aborted
    if (isAsked) this.#hurry = new AbortController()
    try {
      // After a failure held items are left out once: they may be its cause.
      await this.#sweepAll(isAsked || this.#failure === null, signal)
      this.#failure = null
    } catch (error) {
      this.#failure = { error }
      throw error
    } finally {
      this.#lastEndedMs = performance.now()
    }
    await this.#looks.now()
  }

  async #lookAhead(): Promise<void> {
    const { db, clock } = this.#context
    const horizon = later(clock.now(), HORIZON_US)
    const next = await db.session('sweep.ahead', (session) => findNextDeadline(session, horizon))
    if (next !== null) this.expectAt(next)
  }

  /** Passes over due work until none is left. */
  async #sweepAll(held: boolean, signal: AbortSignal): Promise<void> {
    // Held items that did not move have no dead queue yet; they must not stand in the way of others.
    const stuck = new Set<number>()
    let headsBefore = new Map<number, number>()
    for (;;) {
      if (signal.aborted) return
      const found = await this.#findDue(this.#context.pausedParts(), held ? [...stuck] : null)
      const due = { ...found, leases: firstBatches(found.leases) }
      if (due.leases.length + due.expired.length + due.scheduled.length + due.held.length === 0) return
      const heads = new Map(due.held.toReversed().map(({ part, serial }) => [part, serial]))
      for (const [part, serial] of heads) if (headsBefore.get(part) === serial) stuck.add(part)
      headsBefore = heads
      await this.#apply({ ...due, held: due.held.filter(({ part }) => !stuck.has(part)) })
    }
  }

  #findDue(paused: readonly number[], heldExcept: readonly number[] | null): Promise<DueWork> {
    const { db, clock } = this.#context
    const pausedParts = [...paused, ...this.#orphans]
    return db.session('sweep.find', (session) =>
      findDue(session, clock.now(), { limit: PASS_LIMIT, pausedParts, heldExcept }),
    )
  }

  async #apply(due: DueWork): Promise<void> {
    const work = new Map<QueueLoop, Growing<DueWork>>()
    const workFor = async ({ part }: { readonly part: number }) => {
      const loop = await this.#context.loopOfPart(part)
      if (loop === null) {
        this.#orphans.add(part)
        return undefined
      }
      const known = work.get(loop) ?? { leases: [], expired: [], scheduled: [], held: [] }
      work.set(loop, known)
      return known
    }
    for (const batch of due.leases) (await workFor(batch))?.leases.push(batch)
    for (const item of due.expired) (await workFor(item))?.expired.push(item)
    for (const item of due.scheduled) (await workFor(item))?.scheduled.push(item)
    for (const item of due.held) (await workFor(item))?.held.push(item)
    await Promise.all([...work].map(([loop, mine]) => loop.sweep(mine).catch(unlessDeleted)))
  }
}

type Growing<T> = { [K in keyof T]: T[K] extends readonly (infer E)[] ? E[] : never }

/** A queue deleted by another server has nothing left to sweep. */
function unlessDeleted(error: unknown): void {
  if (!(error instanceof BartlebyError && error.code === 'queue_unknown')) throw error
}

/** The oldest batches that one pass can apply; at least one. */
function firstBatches(batches: readonly DueBatch[]): readonly DueBatch[] {
  let leased = 0
  const end = batches.findIndex((batch, i) => {
    leased += parseRuns(batch.runs).length
    return i > 0 && leased > PASS_LEASED
  })
  return end < 0 ? batches : batches.slice(0, end)
}
