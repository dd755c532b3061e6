/**
 * Counts of jobs per consumer and of messages per channel, by signed changes in the transaction of what changes. Dead jobs are counted as
 * letters (dead-counts.ts).
 */
import { counter } from '../../../store/counter.ts'
import type { Integer, Session, Transaction } from '../../../store/database.ts'
import { JOB, type JobState } from '../webhook.ts'

/** Of a consumer its jobs, of a channel its messages. */
export const TALLY = {
  queued: 1,
  inFlight: 2,
  delivered: 3,
  dispatched: 11,
  scheduled: 12,
  scheduledDispatched: 13,
} as const
export type TallyName = keyof typeof TALLY

/** Null for dead ones, whose letters are counted. */
const TALLY_OF_STATE: Readonly<Record<JobState, number | null>> = {
  [JOB.later]: TALLY.queued,
  [JOB.ready]: TALLY.queued,
  [JOB.inFlight]: TALLY.inFlight,
  [JOB.delivered]: TALLY.delivered,
  [JOB.dead]: null,
}

export const webhookCounter = counter({
  name: 'webhooks',
  lock: 'webhooks.fold',
  deltas: 'webhook_deltas',
  given: { subject: 'int', tally: 'smallint', amount: 'bigint' },
  totals: { subjects: { table: 'webhook_totals', keys: ['subject', 'tally'], sums: ['amount'] } },
})

/** The changes of one transaction. */
export class Tallies {
  readonly #changes = new Map<string, number>()

  add(subject: number, name: TallyName, amount: number): void {
    this.#add(subject, TALLY[name], amount)
  }

  /** Null: made now, or gone. */
  moved(consumer: number, from: JobState | null, to: JobState | null, jobs = 1): void {
    if (from !== null) this.#add(consumer, TALLY_OF_STATE[from], -jobs)
    if (to !== null) this.#add(consumer, TALLY_OF_STATE[to], jobs)
  }

  /** Call it once, when all are known. */
  write(tx: Transaction): void {
    const rows = [...this.#changes]
      .filter(([, amount]) => amount !== 0)
      .map(([key, amount]) => [...key.split(' ').map(Number), amount] as [number, number, number])
      .sort(([a, x], [b, y]) => a - b || x - y)
    webhookCounter.add(tx, rows)
  }

  #add(subject: number, tally: number | null, amount: number): void {
    if (tally === null) return
    const key = `${subject} ${tally}`
    this.#changes.set(key, (this.#changes.get(key) ?? 0) + amount)
  }
}

const addedUp = (counted: string): string =>
  `SELECT subject, tally, sum(amount) AS amount FROM ${counted} GROUP BY subject, tally`

/** One row per subject and tally, and the tail. */
const readAll = webhookCounter.read('webhooks.readTallies', 'subjects', addedUp)

/** The tail has no index by subject: it is short, because it is folded every second. */
const readOne = webhookCounter.read('webhooks.readTalliesOf', 'subjects', addedUp, { where: 'subject = $1' })

/** Absent: 0. */
export type Counted = Readonly<Partial<Record<TallyName, number>>>

const NAME_OF_TALLY: ReadonlyMap<number, TallyName> = new Map(
  // The keys of a constant record are its names.
  Object.entries(TALLY).map(([name, number]) => [number, name as TallyName]),
)

interface Row {
  readonly subject: Integer
  readonly tally: Integer
  readonly amount: Integer
}

/** By number. */
export async function readTallies(session: Session): Promise<ReadonlyMap<number, Counted>> {
  return bySubject(await session.rows<Row>(readAll))
}

export async function readTalliesOf(session: Session, subject: number): Promise<Counted> {
  return bySubject(await session.rows<Row>(readOne, subject)).get(subject) ?? {}
}

function bySubject(rows: readonly Row[]): ReadonlyMap<number, Counted> {
  const subjects = new Map<number, Record<string, number>>()
  for (const { subject, tally, amount } of rows) {
    const counted = subjects.get(Number(subject)) ?? {}
    counted[NAME_OF_TALLY.get(Number(tally)) ?? ''] = Number(amount)
    subjects.set(Number(subject), counted)
  }
  return subjects
}
