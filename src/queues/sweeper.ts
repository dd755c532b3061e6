/**
 * Runs what is due, in every queue: right after start and then when the next deadline is over. Deadlines are
 * read from the store, never only remembered, so that any server finishes what another one began.
 */
import { backoffDelayMs } from '../core/backoff.ts'
import { type Alarm, type Clock, type Instant, later } from '../core/clock.ts'
import { BartlebyError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { sleep } from '../core/waiting.ts'
import type { Database } from '../store/database.ts'
import type { QueueLoop } from './loop.ts'
import { type DueBatch, type DueWork, findDue, findNextDeadline } from './sql/due.ts'
import { parseRuns } from './sql/lease.ts'

/** The store is asked this often for deadlines that other servers made; it looks twice as far ahead. */
const POLL_MS = 1_000
const HORIZON_US = 2_000_000n
/** A sweep also tries items that wait for a missing dead queue, which no deadline announces. */
const HELD_EVERY_POLLS = 5

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

export class Sweeper {
  readonly #context: SweeperContext
  readonly #orphans = new Set<number>()
  #alarm: { readonly at: Instant; readonly alarm: Alarm } | undefined
  #poll: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()
  /** A sweep that has not begun yet; aborting it ends its pause, not the sweep. */
  #soon: AbortController | undefined
  #lastEndedMs = 0
  #failures = 0
  readonly #stopped = new AbortController()

  constructor(context: SweeperContext) {
    this.#context = context
  }

  /** Begins to sweep, without waiting for the first one. */
  start(): void {
    this.#runSoon()
    let polls = 0
    this.#poll = setInterval(() => {
      if (++polls % HELD_EVERY_POLLS === 0) this.#runSoon()
      else void this.#lookAhead()
    }, POLL_MS)
    this.#poll.unref()
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    clearInterval(this.#poll)
    this.#alarm?.alarm.cancel()
    await this.#running
  }

  /** Something comes due then. Deadlines beyond the horizon are found by looking ahead. */
  expectAt(deadline: Instant): void {
    if (this.#stopped.signal.aborted) return
    const { clock } = this.#context
    if (deadline > later(clock.now(), HORIZON_US)) return
    if (this.#alarm !== undefined && this.#alarm.at <= deadline) return
    this.#alarm?.alarm.cancel()
    const alarm = clock.alarm(deadline, () => {
      this.#alarm = undefined
      this.#runSoon()
    })
    this.#alarm = { at: deadline, alarm }
  }

  /** Runs everything that is due now, held items included; resolves when it is durable. */
  sweepNow(): Promise<void> {
    this.#soon?.abort()
    const run = this.#running.then(() => this.#sweep(true))
    this.#running = run.catch(() => {})
    return run
  }

  /** Hands a paused queue what is due in it, for the cycle that it runs when it goes on. */
  async sweepInto(loop: QueueLoop): Promise<void> {
    const { db, clock } = this.#context
    const parts = new Set(loop.queue.partitions.map(({ part }) => part))
    const others = this.#context.pausedParts().filter((part) => !parts.has(part))
    const due = await db.session('sweep.find', (session) =>
      findDue(session, clock.now(), {
        limit: PASS_LIMIT,
        pausedParts: [...others, ...this.#orphans],
        heldExcept: null,
      }),
    )
    const mine = {
      leases: firstBatches(due.leases.filter(({ part }) => parts.has(part))),
      expired: due.expired.filter(({ part }) => parts.has(part)),
      scheduled: due.scheduled.filter(({ part }) => parts.has(part)),
      held: [],
    }
    // Not awaited: it is applied once the queue goes on. A failure leaves the work for the next sweep.
    loop.sweep(mine).catch(() => {})
  }

  /** Sweeps as soon as the one that runs is over. */
  sweepSoon(): void {
    this.#runSoon()
  }

  #runSoon(): void {
    // One that has not begun will find whatever is due by then.
    if (this.#soon !== undefined) return
    const soon = new AbortController()
    this.#soon = soon
    this.#running = this.#running.then(async () => {
      const { signal } = this.#stopped
      const distanceMs = this.#lastEndedMs + SWEEP_DISTANCE_MS - performance.now()
      if (distanceMs > 0) {
        const hurry = AbortSignal.any([signal, soon.signal])
        await sleep(distanceMs, hurry)
      }
      this.#soon = undefined
      if (signal.aborted) return
      try {
        await this.#sweep(this.#failures === 0)
        this.#failures = 0
        await this.#lookAhead()
      } catch (error) {
        this.#failures++
        this.#context.log.error({ err: error }, 'sweep failed; it is tried again')
        const delayMs = backoffDelayMs(this.#failures, BACKOFF)
        setTimeout(() => this.#runSoon(), delayMs).unref()
      }
      this.#lastEndedMs = performance.now()
    })
  }

  async #lookAhead(): Promise<void> {
    const { db, clock } = this.#context
    try {
      const horizon = later(clock.now(), HORIZON_US)
      const next = await db.session('sweep.ahead', (session) => findNextDeadline(session, horizon))
      if (next !== null) this.expectAt(next)
    } catch {
      // The store is away; the next look, in a second, may find it again.
    }
  }

  /** Passes over the due work until none is left. */
  async #sweep(held: boolean): Promise<void> {
    // Parts whose held items did not move have no dead queue yet: they are left for the next sweep, and must not
    // stand in the way of others.
    const stuck = new Set<number>()
    let headsBefore = new Map<number, number>()
    for (;;) {
      if (this.#stopped.signal.aborted) return
      const due = await this.#findDue(held ? stuck : null)
      if (due.leases.length + due.expired.length + due.scheduled.length + due.held.length === 0) return
      const heads = new Map(due.held.toReversed().map(({ part, serial }) => [part, serial]))
      for (const [part, serial] of heads) if (headsBefore.get(part) === serial) stuck.add(part)
      headsBefore = heads
      await this.#apply({ ...due, held: due.held.filter(({ part }) => !stuck.has(part)) })
    }
  }

  async #findDue(heldExcept: ReadonlySet<number> | null): Promise<DueWork> {
    const { db, clock, pausedParts } = this.#context
    const due = await db.session('sweep.find', (session) =>
      findDue(session, clock.now(), {
        limit: PASS_LIMIT,
        pausedParts: [...pausedParts(), ...this.#orphans],
        heldExcept: heldExcept && [...heldExcept],
      }),
    )
    return { ...due, leases: firstBatches(due.leases) }
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
