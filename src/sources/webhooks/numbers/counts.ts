/**
 * Counts of jobs per consumer and of messages per channel, by signed changes in the transaction of what changes. Dead jobs are counted as
 * letters (dead-counts.ts).
 */
import { counter } from '../../../store/counter.ts'
import type { Session, Transaction } from '../../../store/database.ts'
import { integer, type RowOf, rowShape } from '../../../store/row.ts'
import { type JobState, type JobStatus, statusOf } from '../webhook.ts'
import { readDeadCounts } from './dead-counts.ts'

/** Numbers in the store: of a consumer its jobs, of a channel its messages. */
export const STORED_COUNTS = {
  queued: 1,
  inFlight: 2,
  delivered: 3,
  dispatched: 11,
  scheduled: 12,
  scheduledDispatched: 13,
} as const
export type StoredCount = keyof typeof STORED_COUNTS
export type CountName = StoredCount | 'dead'

// The keys of a constant record are its names.
const STORED_NAMES = Object.keys(STORED_COUNTS) as readonly StoredCount[]
export const COUNT_NAMES: readonly CountName[] = [...STORED_NAMES, 'dead']
export const MESSAGE_COUNTS = ['dispatched', 'scheduled', 'scheduledDispatched'] as const
export const COUNT_OF_STATUS = {
  QUEUED: 'queued',
  INFLIGHT: 'inFlight',
  DELIVERED: 'delivered',
  DEAD: 'dead',
} as const satisfies Readonly<Record<JobStatus, CountName>>

export const webhookCounter = counter({
  name: 'webhooks',
  lock: 'webhooks.fold',
  deltas: 'webhook_deltas',
  given: { subject: 'int', tally: 'smallint', amount: 'bigint' },
  totals: { subjects: { table: 'webhook_totals', keys: ['subject', 'tally'], sums: ['amount'] } },
})

/** The changes of one transaction. */
export class CountChanges {
  readonly #changes = new Map<string, number>()

  add(subject: number, name: StoredCount, amount: number): void {
    const key = `${subject} ${STORED_COUNTS[name]}`
    this.#changes.set(key, (this.#changes.get(key) ?? 0) + amount)
  }

  /** Null: made now, or gone. */
  moved(consumer: number, from: JobState | null, to: JobState | null, jobs = 1): void {
    if (from !== null) this.#moved(consumer, from, -jobs)
    if (to !== null) this.#moved(consumer, to, jobs)
  }

  /** Call it once, when all are known. */
  write(tx: Transaction): void {
    const rows = [...this.#changes]
      .filter(([, amount]) => amount !== 0)
      .map(([key, amount]) => [...key.split(' ').map(Number), amount] as [number, number, number])
      .sort(([a, x], [b, y]) => a - b || x - y)
    webhookCounter.add(tx, rows)
  }

  #moved(consumer: number, state: JobState, jobs: number): void {
    const name = COUNT_OF_STATUS[statusOf(state)]
    // Dead jobs are counted as letters.
    if (name !== 'dead') this.add(consumer, name, jobs)
  }
}

const addedUp = (counted: string): string =>
  `SELECT subject, tally, sum(amount) AS amount FROM ${counted} GROUP BY subject, tally`

/** One row per subject and tally, and the tail. */
const readAll = webhookCounter.read('webhooks.readTallies', 'subjects', addedUp)

/** The tail has no index by subject: it is short, because it is folded every second. */
const readOne = webhookCounter.read('webhooks.readTalliesOf', 'subjects', addedUp, { where: 'subject = $1' })

const ROW = rowShape({ subject: integer, tally: integer, amount: integer })

/** Absent: 0. */
export type Counted = Readonly<Partial<Record<CountName, number>>>

/** All but dead jobs, by the number of consumer or channel. */
export const readCounts = async (session: Session): Promise<ReadonlyMap<number, Counted>> =>
  bySubject(await ROW.all(session, readAll))

export const readCountsOf = async (session: Session, subject: number): Promise<Counted> =>
  bySubject(await ROW.all(session, readOne, subject)).get(subject) ?? {}

function bySubject(rows: readonly RowOf<typeof ROW>[]): Map<number, Counted> {
  const subjects = new Map<number, Counted>()
  for (const { subject, tally, amount } of rows) {
    const name = STORED_NAMES.find((each) => STORED_COUNTS[each] === tally)
    if (name !== undefined) subjects.set(subject, { ...subjects.get(subject), [name]: amount })
  }
  return subjects
}

/** With the dead jobs of consumers. */
export async function readAllCounts(session: Session): Promise<ReadonlyMap<number, Counted>> {
  const [counts, dead] = await Promise.all([readCounts(session), readDeadCounts(session)])
  const all = new Map(counts)
  for (const { consumer, deadCount } of dead) all.set(consumer, { ...all.get(consumer), dead: deadCount })
  return all
}
