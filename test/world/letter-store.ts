/** A store with letters and queues in it, without an office around: for tests of single acts. Time stands still. */
import { type Instant, instant } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { type LetterId, STATUS } from '../../src/letters/letter.ts'
import { Letters } from '../../src/letters/letters.ts'
import { readLetterCounts } from '../../src/letters/numbers/counts.ts'
import { readPlaceCounts } from '../../src/letters/numbers/summary.ts'
import { newRegisters, type Registers } from '../../src/letters/registers.ts'
import type { FailureReport } from '../../src/letters/reports/report.ts'
import { expiryRequest } from '../../src/letters/retention/expire.ts'
import { inOffice, type OfficeRuns, officeRuns } from '../../src/letters/work.ts'
import { MIGRATIONS } from '../../src/migrations.ts'
import { EngineDirectory } from '../../src/queues/engines/engine-directory.ts'
import type { LeasedBatch } from '../../src/queues/queue.ts'
import { StoreQueues } from '../../src/queues/queues.ts'
import { type Database, sql } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrations.ts'
import { openDatabase } from '../../src/store/open.ts'
import { captureAllNew } from './capture.ts'
import { reportOf } from './report.ts'
import type { FreshStore, StoreKind } from './stores.ts'

const COUNT = sql(
  'test.countLetters',
  'SELECT status, count(*) AS letters FROM bartleby.letters GROUP BY status',
)
const HISTORY = sql(
  'test.history',
  `SELECT operation, letter_id, letter_version, actor, output, engine FROM bartleby.history
   JOIN bartleby.history_series ON history_series.id = history.series ORDER BY created_at, history.id`,
  { bigints: true },
)

export interface RecordedRow {
  readonly operation: string
  readonly letter_id: number | bigint | string | null
  readonly letter_version: number | bigint | null
  readonly actor: string | null
  readonly output: Uint8Array | null
  readonly engine: string
}

export class LetterStore {
  readonly db: Database
  readonly clock = new TestClock()
  readonly registers: Registers = newRegisters()
  readonly queues: StoreQueues
  readonly letters: Letters
  readonly #runs: OfficeRuns
  readonly #place: FreshStore
  #reports = 0

  private constructor(db: Database, place: FreshStore) {
    this.db = db
    this.#place = place
    this.clock.freeze(instant(1_800_000_000_000_000n))
    this.#runs = officeRuns(db, this.clock, silentLog)
    this.queues = new StoreQueues(db, this.clock, silentLog, {
      registers: this.registers,
      runs: this.#runs,
      maxPendingRequests: 1_000,
      dedupeWindowUs: 300_000_000n,
    })
    const names = ['queues', 'engines', 'http'] as const
    this.letters = new Letters(db, this.clock, {
      registers: this.registers,
      runs: this.#runs,
      sources: new Map(names.map((name) => [name, this.queues.letterSource(name)])),
      engines: new EngineDirectory({ context: 'publisher' }),
    })
  }

  static async open(store: StoreKind): Promise<LetterStore> {
    const place = await store.fresh()
    const db = openDatabase(place.url, { poolSize: 8 })
    await migrate(db, MIGRATIONS)
    return new LetterStore(db, place)
  }

  /** Expires pending letters that failed last before an instant; gives how many. */
  async expireBefore(before: Instant): Promise<number> {
    const { id } = await this.#runs.inWork('test.expire', (work) =>
      this.#runs.begin(work, expiryRequest({ before, engine: null, actor: 'tester' })),
    )
    return (await this.#runs.over(id, 1_000_000n))?.done ?? 0
  }

  async close(): Promise<void> {
    await this.#runs.stop()
    await this.queues.stop()
    await this.db.close()
    await this.#place.dispose()
  }

  /** A queue, with a dead queue called `{name}-dead` when `maxAttempts` is given. */
  async createQueue(queueName: string, maxAttempts = 0): Promise<void> {
    const settings = { queueName, leaseTimeout: '1m', expireTimeout: '240h', requestedPartitions: 1 }
    if (maxAttempts > 0) await this.queues.create({ ...settings, queueName: `${queueName}-dead` })
    await this.queues.create({
      ...settings,
      ...(maxAttempts > 0 ? { deadQueue: `${queueName}-dead`, maxAttempts } : {}),
    })
  }

  /** Leases up to ten items. */
  async lease(queueName: string): Promise<LeasedBatch> {
    return this.queues.lease({ queueName, clientId: 'consumer', batchSize: 10, requestTimeout: '1s' })
  }

  /** A report that differs from every other. */
  report(changes: Partial<FailureReport> = {}): FailureReport {
    return reportOf(++this.#reports, this.clock.now(), changes)
  }

  async capture(changes: Partial<FailureReport> = {}): Promise<LetterId> {
    const [id] = await this.captureMany(1, () => changes)
    if (id === undefined) throw new Error('nothing was captured')
    return id
  }

  /** Many letters in one transaction. */
  captureMany(
    count: number,
    changes: (i: number) => Partial<FailureReport> = () => ({}),
  ): Promise<LetterId[]> {
    const reports = Array.from({ length: count }, (_, i) => this.report(changes(i)))
    return inOffice(this.db, this.clock, 'test.capture', (work) =>
      captureAllNew(work, this.registers, reports),
    )
  }

  /**
   * Letters per status, as the counts have them and as they are; they must be equal. Read on one snapshot: after a
   * jump of the clock sweeps are still at work, and on a busy machine one would end between two reads.
   */
  async statuses(): Promise<{ readonly counted: readonly number[]; readonly real: readonly number[] }> {
    return this.db.snapshot('test', async (session) => {
      const counted = [0, 0, 0]
      for (const { status, letters } of await readLetterCounts(session)) {
        if (status < STATUS.removed) counted[status] = (counted[status] ?? 0) + letters
      }
      const real = [0, 0, 0]
      for (const row of await session.rows<{ status: number; letters: number }>(COUNT)) {
        real[Number(row.status)] = Number(row.letters)
      }
      return { counted, real }
    })
  }

  /** How many letters the counts say were removed. */
  async removed(): Promise<number> {
    const accounts = await this.db.session('test', (session) => readPlaceCounts(session))
    return accounts.reduce((sum, { removed }) => sum + removed, 0)
  }

  history(): Promise<RecordedRow[]> {
    return this.db.session('test', (session) => session.rows<RecordedRow>(HISTORY))
  }
}
