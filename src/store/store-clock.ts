/**
 * The time of servers that share a database. Leases, due times and deadlines that one server writes are judged by the others, so
 * their clocks must agree, and those of machines do not always: on PostgreSQL every server's clock follows the database's. It is
 * measured at the start and from then on, by the middle of a round trip, and the clock of the machine is shifted by the difference.
 */
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { Rounds, type Service } from '../core/rounds.ts'
import { NODE_SOURCES, SystemClock, type TimeSources } from '../core/system-clock.ts'
import { type Database, type Integer, type Session, sql } from './database.ts'

const EVERY_US = 30_000_000n
/** The quickest of so many round trips is taken: in it the answer cannot be far from the middle. */
const ROUND_TRIPS = 3
/**
 * A smaller difference is left alone. Clocks that are kept by NTP differ by a few milliseconds, and the middle of a round trip is
 * not known better; following that would let time jump and stand still for nothing, where every deadline has a second to spare.
 */
const FOLLOWED_MS = 100
/** A difference that somebody should look after. */
const WORTH_A_WARNING_MS = 1_000

/** The database's time, which goes on within a transaction. */
const readTime = sql('clock.read', {
  postgres: 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms',
})

/** What one look showed. */
interface Reading {
  /** The database's time minus the machine's. */
  readonly differenceMs: number
  readonly tookMs: number
}

export class StoreClock implements Service {
  readonly name = 'store.clock'
  /** The machine's clock, set by the database's. */
  readonly clock: Clock
  readonly #db: Database
  readonly #log: Log
  readonly #machine: TimeSources
  /** Whole milliseconds: ticks of the shifted clock are ticks of the machine's. */
  #shiftMs = 0
  #isWarned = false
  readonly #following: Rounds

  /** Shifted by nothing until `follow` was called. */
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

  /** Looks at the database's clock and follows it from now on, when the difference is worth it. */
  async follow(): Promise<void> {
    const { differenceMs, tookMs } = await this.#db.session('clock', (session) => this.#read(session))
    // Where the answer came from within the round trip is not known.
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
    // Once for every time that it goes wrong.
    this.#isWarned = isFar
  }

  /** Goes on following. */
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
