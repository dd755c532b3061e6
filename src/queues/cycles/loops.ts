/** The loops of the queues that this server has touched, the sweeper, the count folder, and the announcer that wakes other servers. */
import type { Clock, Instant } from '../../core/clock.ts'
import { failure } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { Rounds, type Service } from '../../core/rounds.ts'
import type { Registers } from '../../letters/registers.ts'
import type { OfficeRuns } from '../../letters/work.ts'
import { Announcer } from '../../store/announcer.ts'
import { type Database, sql } from '../../store/database.ts'
import { CountFolder } from '../../store/fold.ts'
import { partitionCounter } from '../counts.ts'
import { type QueueRecord, readQueue } from '../records.ts'
import { forgetDedupeKeys } from '../verbs/dedupe.ts'
import type { Arrival } from './cycle.ts'
import { QueueLoop } from './loop.ts'
import { Sweeper } from './sweeper.ts'

/** How often waiting leases look at the store: notifications may be lost, and SQLite has none. */
const POLL_US = 1_000_000n
/** Dedupe keys forgotten per poll. */
const FORGET_LIMIT = 1_000

const readQueueOfPart = sql(
  'queues.ofPart',
  `SELECT name FROM bartleby.queues WHERE id = (SELECT queue_id FROM bartleby.partitions WHERE part = $1)`,
)

export interface QueuesOptions {
  /** Requests of one queue that may wait to be picked up; waiting leases do not count. */
  readonly maxPendingRequests: number
  readonly dedupeWindowUs: bigint
  readonly registers: Registers
  readonly runs: OfficeRuns
}

/** What the loops of queues and of their dead queues know of each other. */
export class DeadQueues {
  readonly #loops: ReadonlyMap<string, QueueLoop>
  /** Queues with overlapping deaths, by dead queue. */
  readonly #overlaps = new Map<string, number>()

  constructor(loops: ReadonlyMap<string, QueueLoop>) {
    this.#loops = loops
  }

  isLeasedFrom(deadQueue: string): boolean {
    return this.#loops.get(deadQueue)?.isLeasedFrom ?? false
  }

  /** Not leased from while overlapping deaths arrive. */
  isOverlapped(deadQueue: string): boolean {
    return this.#overlaps.has(deadQueue)
  }

  overlap(deadQueue: string): void {
    this.#overlaps.set(deadQueue, (this.#overlaps.get(deadQueue) ?? 0) + 1)
  }

  over(deadQueue: string): void {
    const left = (this.#overlaps.get(deadQueue) ?? 0) - 1
    if (left > 0) this.#overlaps.set(deadQueue, left)
    else this.#overlaps.delete(deadQueue)
    this.#loops.get(deadQueue)?.wake()
  }
}

export class LoopDirectory implements Service {
  readonly name = 'queues'
  readonly announcer: Announcer
  readonly #db: Database
  readonly #clock: Clock
  readonly #log: Log
  readonly #options: QueuesOptions
  readonly #loops = new Map<string, QueueLoop>()
  readonly #loopsByPart = new Map<number, QueueLoop>()
  readonly #deadQueues = new DeadQueues(this.#loops)
  readonly #sweeper: Sweeper
  readonly #folder: CountFolder
  readonly #polls: readonly Rounds[]
  #stopping = false

  constructor(db: Database, clock: Clock, log: Log, options: QueuesOptions) {
    this.#db = db
    this.#clock = clock
    this.#log = log
    this.#options = options
    this.announcer = new Announcer(db, log)
    this.#folder = new CountFolder(partitionCounter, { db, clock, log })
    this.#sweeper = new Sweeper({
      db,
      clock,
      log,
      loopOfPart: (part) => this.#findByPart(part),
      pausedParts: () => this.#pausedParts(),
    })
    const every = { clock, log, everyUs: POLL_US, isFirstLater: true }
    this.#polls = [
      new Rounds({
        ...{ ...every, name: 'queues.poll', trouble: 'waiting leases were not woken' },
        act: () => {
          for (const loop of this.#loops.values()) if (loop.hasWaiters) loop.wake()
        },
      }),
      new Rounds({
        ...{ ...every, name: 'queues.dedupe' },
        act: () =>
          db.session('dedupe.forget', (session) => forgetDedupeKeys(session, clock.now(), FORGET_LIMIT)),
        trouble: 'dedupe keys were not forgotten; the next round tries again',
      }),
    ]
  }

  get rounds(): readonly Rounds[] {
    return [...this.#polls, this.#sweeper, this.#folder, this.announcer].flatMap(({ rounds }) => rounds)
  }

  async start(): Promise<void> {
    this.announcer.onWord(({ about, number, from }) => {
      this.#loops.get(about)?.wake({ part: number, firstSerial: from })
    })
    await this.announcer.start()
    this.#sweeper.start()
    this.#folder.start()
    for (const polls of this.#polls) polls.start()
  }

  async stop(): Promise<void> {
    this.#stopping = true
    const polled = this.#polls.map((polls) => polls.stop())
    // First: a sweep cannot hand work to a closed loop, and would find the same work for ever.
    const swept = this.#sweeper.stop()
    const stopping = failure('queue_stopping')
    await Promise.all(
      [...this.#loops.values()].map((loop) => loop.close(stopping, failure('service_stopping'))),
    )
    await swept
    await Promise.all([...polled, this.#folder.stop()])
    await this.announcer.stop()
  }

  checkOpen(): void {
    if (this.#stopping) throw failure('service_stopping')
  }

  async find(name: string): Promise<QueueLoop | null> {
    const known = this.#loops.get(name)
    if (known !== undefined) return known
    const queue = await this.#db.session('queues.find', (session) => readQueue(session, name))
    return queue === null ? null : this.open(queue)
  }

  open(queue: QueueRecord): QueueLoop {
    const known = this.#loops.get(queue.queueName)
    if (known !== undefined && known.queue.queueId === queue.queueId) {
      if (queue.version > known.queue.version) known.replaceQueue(queue)
      return known
    }
    if (known !== undefined) void this.#forget(known)
    const loop = new QueueLoop(queue, {
      db: this.#db,
      clock: this.#clock,
      log: this.#log,
      ...this.#options,
      onCommit: (arrivals, nextDeadline) => this.committed(arrivals, nextDeadline, loop),
      onGone: () => void this.#forget(loop),
      deadQueues: this.#deadQueues,
    })
    this.#loops.set(queue.queueName, loop)
    for (const { part } of queue.partitions) this.#loopsByPart.set(part, loop)
    return loop
  }

  async remove(queue: QueueRecord): Promise<void> {
    const loop = this.#loops.get(queue.queueName)
    if (loop !== undefined && loop.queue.queueId === queue.queueId) await this.#forget(loop)
  }

  /** Wakes those who wait for arrivals, here and on other servers. */
  committed(arrivals: readonly Arrival[], nextDeadline: Instant | null, by?: QueueLoop): void {
    if (nextDeadline !== null) this.#sweeper.expectAt(nextDeadline)
    for (const arrival of arrivals) {
      const loop = this.#loops.get(arrival.queueName)
      // The committing loop dealt in the same cycle; its waiters have nothing new to find.
      if (loop !== undefined && loop !== by) loop.wake(arrival)
      const { queueName, part, firstSerial } = arrival
      this.announcer.announce({ about: queueName, number: part, from: firstSerial })
    }
  }

  /** Holds or releases a queue; work that came due meanwhile runs in its first cycle. */
  async pause(loop: QueueLoop, paused: boolean): Promise<void> {
    if (!paused && loop.paused) await this.#sweeper.sweepInto(loop)
    loop.pause(paused)
  }

  /** Sweeps after a queue was created or changed: items held for a missing dead queue may move now. */
  tryHeldSoon(): void {
    void this.#sweeper.sweep()
  }

  /** Applies everything due in every queue and waits until nothing is left. */
  async settle(): Promise<void> {
    await this.#sweeper.sweepNow()
    await Promise.all([...this.#loops.values()].map((loop) => loop.idle()))
  }

  waitDeadlines(): Instant[] {
    return [...this.#loops.values()].flatMap(({ waiters }) => waiters.map(({ deadline }) => deadline))
  }

  async #forget(loop: QueueLoop): Promise<void> {
    const { queueName, partitions } = loop.queue
    if (this.#loops.get(queueName) === loop) this.#loops.delete(queueName)
    for (const { part } of partitions) this.#loopsByPart.delete(part)
    await loop.close(failure('queue_stopping'), failure('queue_unknown', { name: queueName }))
  }

  async #findByPart(part: number): Promise<QueueLoop | null> {
    const known = this.#loopsByPart.get(part)
    if (known !== undefined) return known
    const [row] = await this.#db.session('queues.ofPart', (session) =>
      session.rows<{ name: string }>(readQueueOfPart, part),
    )
    return row === undefined ? null : this.find(row.name)
  }

  #pausedParts(): number[] {
    return [...this.#loops.values()]
      .filter((loop) => loop.paused)
      .flatMap((loop) => loop.queue.partitions.map(({ part }) => part))
  }
}
