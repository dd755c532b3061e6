/**
 * The composition root: opens the store, brings it up to date, wires the modules, starts and stops them.
 *
 *   open ──► drain (waiters answered, writes finished, new calls refused) ──► close
 */
import type { Clock, Instant } from './core/clock.ts'
import { parseGoDuration, usFromNs } from './core/duration.ts'
import { failure } from './core/errors.ts'
import { type Log, silentLog } from './core/log.ts'
import { SystemClock } from './core/system-clock.ts'
import { TestClock } from './core/test-clock.ts'
import { type Database, type StoreCall, sql } from './db/database.ts'
import { type MigrationReport, migrate } from './db/migrations.ts'
import { openDatabase } from './db/open.ts'
import { MIGRATIONS } from './migrations.ts'
import type { Queues } from './queues/queue.ts'
import { StoreQueues } from './queues/queues.ts'

export interface OfficeOptions {
  /** `sqlite:PATH`, `sqlite::memory:` or `postgres://…`. */
  readonly store: string
  readonly postgres?: { readonly poolSize: number }
  readonly queues?: {
    /** Requests of one queue that may wait to be picked up. Default 100. */
    readonly maxPendingRequests?: number
    /** How long a dedupe key is remembered, as a Go duration. Default 5m. */
    readonly dedupeWindow?: string
  }
  readonly clock?: Clock
  readonly log?: Log
}

const DEFAULT_POOL_SIZE = 8
const DEFAULT_MAX_PENDING = 100
const DEFAULT_DEDUPE_WINDOW = '5m'

const probe = sql('office.ping', 'SELECT count(*) AS found FROM bartleby.migrations')

export class Office {
  readonly queues: Queues
  readonly clock: Clock
  readonly #db: Database
  readonly #queues: StoreQueues
  #draining: Promise<void> | undefined

  private constructor(db: Database, clock: Clock, queues: StoreQueues) {
    this.#db = db
    this.#queues = queues
    this.queues = queues
    this.clock = clock
  }

  /** Opens the office on a store, creating or upgrading its tables first. Close it when done. */
  static async open(options: OfficeOptions): Promise<Office> {
    const clock = options.clock ?? new SystemClock()
    const db = openDatabase(options.store, options.postgres ?? { poolSize: DEFAULT_POOL_SIZE })
    try {
      await migrate(db, MIGRATIONS)
      const queues = new StoreQueues(db, clock, options.log ?? silentLog, {
        maxPendingRequests: options.queues?.maxPendingRequests ?? DEFAULT_MAX_PENDING,
        dedupeWindowUs: windowUs(options.queues?.dedupeWindow ?? DEFAULT_DEDUPE_WINDOW),
      })
      await queues.start()
      return new Office(db, clock, queues)
    } catch (error) {
      await db.close()
      throw error
    }
  }

  /** Resolves when the store answers; rejects when it does not. */
  async ping(): Promise<void> {
    await this.#db.session('ping', (session) => session.rows(probe))
  }

  /** Tells `listener` about every use of the store. */
  onStoreCall(listener: (call: StoreCall) => void): void {
    this.#db.onCall(listener)
  }

  /** Test control: stops the clock at an instant. The office must have been opened with a `TestClock`. */
  async freezeClock(at: Instant): Promise<void> {
    this.#testClock().freeze(at)
    await this.#queues.settle()
  }

  /**
   * Test control: moves the stopped clock and runs everything that has come due. It stops at every moment at
   * which a waiting lease runs out of time, so that what came due before that still reaches it.
   */
  async advanceClock(us: bigint): Promise<void> {
    const clock = this.#testClock()
    const target = clock.now() + us
    const stops = this.queues
      .waitDeadlines()
      .filter((deadline) => deadline > clock.now() && deadline < target)
    for (const stop of [...new Set(stops)].sort((a, b) => (a < b ? -1 : 1))) {
      clock.advance(stop - clock.now())
      await this.#queues.settle()
    }
    clock.advance(us < 0n ? us : target - clock.now())
    await this.#queues.settle()
  }

  /** Answers waiting leases and finishes accepted writes; calls made from now on are refused. */
  drain(): Promise<void> {
    this.#draining ??= this.#queues.drain()
    return this.#draining
  }

  /** Drains and closes the store. */
  async close(): Promise<void> {
    await this.drain()
    await this.#db.close()
  }

  #testClock(): TestClock {
    if (!(this.clock instanceof TestClock)) throw failure('clock_not_frozen')
    return this.clock
  }
}

/** Brings a store up to date without opening the office. */
export async function migrateStore(store: string): Promise<MigrationReport> {
  const db = openDatabase(store, { poolSize: 1 })
  try {
    return await migrate(db, MIGRATIONS)
  } finally {
    await db.close()
  }
}

function windowUs(text: string): bigint {
  const parsed = parseGoDuration(text)
  if (!parsed.ok || parsed.ns < 0n) {
    throw new TypeError(`queues.dedupeWindow: '${text}' is not a duration such as 5m or 1h`)
  }
  return usFromNs(parsed.ns)
}
