/**
 * Retention: once an hour one server removes what is past its time, under a lock that is leased batch by batch.
 * Resolved letters age from their resolution, expired ones from their expiry or a later failure, history from its making;
 * pending letters stay.
 */
import { type Alarm, type Clock, type Instant, later } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Database } from '../db/database.ts'
import { leasedLock } from '../db/lock.ts'
import type { Letter } from './letter.ts'
import { type Removed, RetentionRun } from './retention-run.ts'
import type { LetterSource } from './source.ts'

export type { Removed } from './retention-run.ts'

export interface RetentionOptions {
  readonly retentionDays: number
  /** Those that keep something about their letters beside them. */
  readonly sources?: readonly LetterSource[]
}

/** How long letters that are resolved or expired are kept, unless somebody says otherwise. */
export const DEFAULT_RETENTION_DAYS = 90

const DAY_US = 86_400_000_000n
const HOUR_US = 3_600_000_000n
/** A server that is started anew every half hour would otherwise never come to it. */
const FIRST_RUN_AFTER_US = 60_000_000n
/** Renewed before every batch; a server that dies is replaced after this long. */
const LOCK_US = 60_000_000n

/** Until when a letter is kept at least, and can be restored; null for a pending one, which stays. */
export function keptUntil(
  { resolvedAt, expiredAt, lastFailureAt }: Pick<Letter, 'resolvedAt' | 'expiredAt' | 'lastFailureAt'>,
  retentionDays: number,
): Instant | null {
  const since = expiredAt !== null && expiredAt < lastFailureAt ? lastFailureAt : (expiredAt ?? resolvedAt)
  return since === null ? null : later(since, BigInt(retentionDays) * DAY_US)
}

export class RetentionClerk {
  readonly #db: Database
  readonly #clock: Clock
  readonly #log: Log
  readonly #options: RetentionOptions
  readonly #owner = crypto.randomUUID()
  readonly #stopped = new AbortController()
  readonly #listeners: ((removed: Removed) => void)[] = []
  #alarm: Alarm | undefined
  #running: Promise<unknown> = Promise.resolve()

  constructor(db: Database, clock: Clock, log: Log, options: RetentionOptions) {
    this.#db = db
    this.#clock = clock
    this.#log = log
    this.#options = options
  }

  /** Tells `listener` after every run what it removed, also when it failed half-way. */
  onRemoved(listener: (removed: Removed) => void): void {
    this.#listeners.push(listener)
  }

  /** Runs soon, and from then on every hour. */
  start(): void {
    this.#schedule(FIRST_RUN_AFTER_US)
  }

  /** Ends the run at hand after its batch. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#alarm?.cancel()
    await this.#running.catch(() => {})
  }

  /** One run now; null when another server is at it. */
  runNow(): Promise<Removed | null> {
    const run = this.#running.catch(() => {}).then(() => this.#run())
    this.#running = run
    return run
  }

  #schedule(inUs: bigint): void {
    this.#alarm = this.#clock.alarm(later(this.#clock.now(), inUs), () => {
      this.runNow()
        .catch((error: unknown) =>
          this.#log.warn({ err: error }, 'retention failed; the next run tries again'),
        )
        .finally(() => {
          if (!this.#stopped.signal.aborted) this.#schedule(HOUR_US)
        })
    })
  }

  async #run(): Promise<Removed | null> {
    const lock = leasedLock(this.#db, this.#clock, 'letters.retention', this.#owner)
    const mayGoOn = async () => !this.#stopped.signal.aborted && (await lock.take(LOCK_US))
    if (!(await mayGoOn())) return null
    const run = new RetentionRun(this.#db, this.#clock, this.#options.sources ?? [], mayGoOn)
    try {
      await run.removeOlderThan(this.#options.retentionDays)
    } finally {
      this.#tell(run.removed)
      await lock.drop()
    }
    return run.removed
  }

  #tell(removed: Removed): void {
    for (const listener of this.#listeners) listener(removed)
    if (removed.letters + removed.history > 0) this.#log.info(removed, 'removed what was past its time')
  }
}
