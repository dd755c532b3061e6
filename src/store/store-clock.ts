/**
 * The time of servers that share a database. They judge each other's leases and deadlines, so their clocks must agree: on PostgreSQL each
 * follows the database's, measured by the middle of a round trip, by shifting the machine's clock.
 */
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { Rounds, type Service } from '../core/rounds.ts'
import { NODE_SOURCES, SystemClock, type TimeSources } from '../core/system-clock.ts'
import { type Database, type Integer, type Session, sql } from './database.ts'

const EVERY_US = 30_000_000n
/** The quickest is taken: its answer cannot be far from the middle. */
const ROUND_TRIPS = 3
/** Smaller differences are ignored: NTP and round trips tell no better, and every deadline has a second to spare. */
const FOLLOWED_MS = 100
/** Somebody should look. */
const WORTH_A_WARNING_MS = 1_000

/** Goes on within a transaction. */
const readTime = sql('clock.read', {
  postgres: 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms',
})

interface Reading {
  /** Database minus machine. */
  readonly differenceMs: number
  readonly tookMs: number
}

export class StoreClock implements Service {
  readonly name = 'store.clock'
  readonly clock: Clock
  readonly #db: Database
  readonly #log: Log
  readonly #machine: TimeSources
  /** Whole milliseconds, so that ticks stay ticks. */
  #shiftMs = 0
  #isWarned = false
  readonly #following: Rounds

  /** Not shifted before `follow`. */
  constructor(db: Database, log: Log, machine: TimeSources = NODE_SOURCES) {
    this.#db = db
    this.#log = log
    this.#machine = machine
    this.clock = new SystemClock({
      wallMs: () => machine.wallMs() + this.#shiftMs,
      steadyMs: () => machine.steadyMs(),
    })
    this.#following = new Rounds({
      ...{ name: this.name, clock: this.clock, log, everyUs: EVERY_US, isFirstLater: true },
      act: () => this.follow(),
      trouble: "the database's clock was not read; the next round tries again",
      level: 'debug',
    })
  }

  get rounds(): readonly Rounds[] {
    return [this.#following]
  }

  /** Measures once, and follows if the difference is worth it. */
  async follow(): Promise<void> {
    const { differenceMs, tookMs } = await this.#db.session('clock', (session) => this.#read(session))
    // The answer came from anywhere within the round trip.
    const uncertainMs = tookMs / 2
    if (Math.abs(differenceMs - this.#shiftMs) > Math.max(FOLLOWED_MS, uncertainMs))
      this.#shiftMs = Math.round(differenceMs)
    const isFar = Math.abs(differenceMs) - uncertainMs > WORTH_A_WARNING_MS
    if (isFar && !this.#isWarned) {
      this.#log.warn(
        { differenceSeconds: Math.round(differenceMs) / 1_000 },
        'the clock of this machine differs from that of the database, whose time is used; is it synchronised?',
      )
    }
    // Warns once per deviation.
    this.#isWarned = isFar
  }

  start(): void {
    this.#following.start()
  }

  stop(): Promise<void> {
    return this.#following.stop()
  }

  async #read(session: Session): Promise<Reading> {
    let best: Reading | null = null
    for (let i = 0; i < ROUND_TRIPS; i++) {
      const startedMs = this.#machine.steadyMs()
      const [row] = await session.rows<{ ms: Integer }>(readTime)
      const tookMs = this.#machine.steadyMs() - startedMs
      const middleMs = this.#machine.wallMs() - tookMs / 2
      const reading = { differenceMs: Number(row?.ms) - middleMs, tookMs }
      if (best === null || tookMs < best.tookMs) best = reading
    }
    if (best === null || !Number.isFinite(best.differenceMs)) throw new Error('the database told no time')
    return best
  }
}
