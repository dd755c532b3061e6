/**
 * How many jobs of each state a consumer has, and how many messages a channel: counted like everything here, by a signed change
 * in the transaction of what changes. SQLite adds to the totals, PostgreSQL appends a delta that is folded later, and a read
 * adds what is not folded yet. Dead jobs are letters, and are counted as such (dead-counts.ts).
 */
import { type Integer, type Session, sql, type Transaction } from '../db/database.ts'
import { countFold } from '../db/fold.ts'
import { JOB, type JobState } from './webhook.ts'

/** What is counted: of a consumer its jobs, of a channel its messages. */
export const TALLY = {
  queued: 1,
  inFlight: 2,
  delivered: 3,
  dispatched: 11,
  scheduled: 12,
  scheduledDispatched: 13,
} as const
export type TallyName = keyof typeof TALLY

/** The tally of jobs in a state; null for dead ones, whose letters are counted. */
const TALLY_OF_STATE: Readonly<Record<JobState, number | null>> = {
  [JOB.later]: TALLY.queued,
  [JOB.ready]: TALLY.queued,
  [JOB.inFlight]: TALLY.inFlight,
  [JOB.delivered]: TALLY.delivered,
  [JOB.dead]: null,
}

/** Appends one delta row (PostgreSQL) or adds to the totals (SQLite). One row either way. */
const addChange = sql('webhooks.tally', {
  postgres: 'INSERT INTO bartleby.webhook_deltas (subject, tally, amount) VALUES ($1, $2, $3)',
  sqlite: `INSERT INTO webhook_totals (subject, tally, amount) VALUES ($1, $2, $3)
           ON CONFLICT (subject, tally) DO UPDATE SET amount = amount + excluded.amount`,
})

/** All changes of a transaction in one row each, in one statement. */
const addChanges = sql('webhooks.tallyAll', {
  postgres: `INSERT INTO bartleby.webhook_deltas (subject, tally, amount)
             SELECT * FROM unnest($1::int[], $2::smallint[], $3::bigint[])`,
  sqlite: '',
})

/** The changes of one transaction. */
export class Tallies {
  readonly #changes = new Map<string, number>()

  add(subject: number, name: TallyName, amount: number): void {
    this.#add(subject, TALLY[name], amount)
  }

  /** So many jobs of a consumer are in this state from now on; null: there was none, or there is none any more. */
  moved(consumer: number, from: JobState | null, to: JobState | null, jobs = 1): void {
    if (from !== null) this.#add(consumer, TALLY_OF_STATE[from], -jobs)
    if (to !== null) this.#add(consumer, TALLY_OF_STATE[to], jobs)
  }

  /** Makes the changes part of the transaction. Call it once, when all are known. */
  write(tx: Transaction): void {
    const rows = [...this.#changes]
      .filter(([, amount]) => amount !== 0)
      .map(([key, amount]) => [...key.split(' ').map(Number), amount] as [number, number, number])
      .sort(([a, x], [b, y]) => a - b || x - y)
    if (rows.length > 1 && tx.dialect === 'postgres') {
      const column = (i: 0 | 1 | 2) => `{${rows.map((row) => row[i]).join(',')}}`
      tx.atCommit(addChanges, column(0), column(1), column(2))
    } else for (const row of rows) tx.atCommit(addChange, ...row)
  }

  #add(subject: number, tally: number | null, amount: number): void {
    if (tally === null) return
    const key = `${subject} ${tally}`
    this.#changes.set(key, (this.#changes.get(key) ?? 0) + amount)
  }
}

/** How deltas are folded. Those of dead jobs are folded with all letters. */
export const webhookFold = countFold({
  name: 'webhooks.fold',
  lock: 'webhooks.fold',
  deltas: 'bartleby.webhook_deltas',
  totals: 'bartleby.webhook_totals',
  keys: ['subject', 'tally'],
  sums: ['amount'],
})

/** Totals and the unfolded tail in one snapshot; one row per subject and tally, and the tail. */
const readAll = sql('webhooks.readTallies', {
  postgres: `SELECT subject, tally, sum(amount) AS amount FROM (
               SELECT subject, tally, amount FROM bartleby.webhook_totals
               UNION ALL SELECT subject, tally, amount FROM bartleby.webhook_deltas
             ) AS counted GROUP BY subject, tally`,
  sqlite: 'SELECT subject, tally, amount FROM webhook_totals',
})

/** The same of one subject. The tail has no index by subject: it is short, because it is folded every second. */
const readOne = sql('webhooks.readTalliesOf', {
  postgres: `SELECT subject, tally, sum(amount) AS amount FROM (
               SELECT subject, tally, amount FROM bartleby.webhook_totals WHERE subject = $1
               UNION ALL SELECT subject, tally, amount FROM bartleby.webhook_deltas WHERE subject = $1
             ) AS counted GROUP BY subject, tally`,
  sqlite: 'SELECT subject, tally, amount FROM webhook_totals WHERE subject = $1',
})

/** The counts of a subject by name; what is missing is 0. */
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

/** Every count there is, by the number of its channel or consumer. */
export async function readTallies(session: Session): Promise<ReadonlyMap<number, Counted>> {
  return bySubject(await session.rows<Row>(readAll))
}

/** The counts of one channel or consumer. */
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
