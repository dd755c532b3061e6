/**
 * Runs what is due, in every queue: right after start and then when the next deadline is over. Deadlines are
 * read from the store, never only remembered, so that any server finishes what another one began.
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

/** The store is asked this often for deadlines that other servers made; it looks twice as far ahead. */
const LOOK_US = 1_000_000n
const HORIZON_US = 2_000_000n
/** A sweep also tries items that wait for a missing dead queue, which no deadline announces. */
const HELD_EVERY_US = 5_000_000n

/** Sweeps keep this distance under load: leases that end one after the other share a sweep. */
const SWEEP_DISTANCE_MS = 20

/** Rows of each kind in one pass: what one transaction of a queue can apply in some ten milliseconds. */
const PASS_LIMIT = 1_000
const PASS_LEASED = 8_000

/** A store that fails is tried again after this. */
const BACKOFF = { baseMs: 500, factor: 1.5, maxMs: 5_000, jitter: 0.2 }

interface SweeperContext {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  /** The loop of the queue that a part belongs to; null when the queue was deleted. */
  readonly loopOfPart: (part: number) => Promise<QueueLoop | null>
  /** Parts whose queues are paused. */
  readonly pausedParts: () => number[]
}

export class Sweeper implements Service {
  readonly name = 'queues.sweep'
  readonly #context: SweeperContext
  readonly #orphans = new Set<number>()
  readonly #sweeps: Rounds
  readonly #looks: Rounds
  /** Aborted while somebody waits for a sweep: it keeps no distance then. */
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

  /** Begins to sweep, without waiting for the first one. */
  start(): void {
    for (const rounds of this.rounds) rounds.start()
  }

  async stop(): Promise<void> {
    await Promise.all(this.rounds.map((rounds) => rounds.stop()))
  }

  /** Something comes due then. Deadlines beyond the horizon are found by looking ahead. */
  expectAt(deadline: Instant): void {
    if (deadline <= later(this.#context.clock.now(), HORIZON_US)) this.#sweeps.expect(deadline)
  }

  /** Sweeps soon, and once more when one is under way. */
  sweep(): Promise<void> {
    return this.#sweeps.now()
  }

  /** Runs everything that is due now, held items included; resolves when it is durable. */
  async sweepNow(): Promise<void> {
    this.#hurry.abort()
    await this.sweep()
    if (this.#failure !== null) throw this.#failure.error
  }

  /** Hands a paused queue what is due in it, for the cycle that it runs when it goes on. */
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
    // Not awaited: it is applied once the queue goes on. A failure leaves the work for the next sweep.
    loop.sweep(mine).catch(() => {})
  }

  async #sweepAtDistance(signal: AbortSignal): Promise<void> {
    const distanceMs = this.#lastEndedMs + SWEEP_DISTANCE_MS - performance.now()
    if (distanceMs > 0) await sleep(distanceMs, AbortSignal.any([signal, this.#hurry.signal]))
    const isAsked = this.#hurry.signal.aborted
    if (isAsked) this.#hurry = new AbortController()
    try {
      // After a failure held items are left alone once: they may be its cause.
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

  /** Passes over the due work until none is left. */
  async #sweepAll(held: boolean, signal: AbortSignal): Promise<void> {
    // Parts whose held items did not move have no dead queue yet: they are left for the next sweep, and must not
    // stand in the way of others.
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

/** The same lists, to be filled. */
type Growing<T> = { [K in keyof T]: T[K] extends readonly (infer E)[] ? E[] : never }

/** Another server has deleted the queue meanwhile: there is nothing left to sweep in it, and others go on. */
function unlessDeleted(error: unknown): void {
  if (!(error instanceof BartlebyError && error.code === 'queue_unknown')) throw error
}

/** As many batches, oldest first, as hold what one pass can apply; at least one. */
function firstBatches(batches: readonly DueBatch[]): readonly DueBatch[] {
  let leased = 0
  const end = batches.findIndex((batch, i) => {
    leased += parseRuns(batch.runs).length
    return i > 0 && leased > PASS_LEASED
  })
  return end < 0 ? batches : batches.slice(0, end)
}
