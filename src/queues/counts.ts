/**
 * Exact counts per partition. Every transition appends a signed change in its own transaction, so nothing ever counts items. Ages need
 * sums of instants: whole seconds and the microseconds beyond, because a plain sum over a large queue exceeds 64 bits.
 */
import type { Instant } from '../core/clock.ts'
import { counter } from '../store/counter.ts'
import type { Integer, Session, Transaction, Value } from '../store/database.ts'
import type { Partition, QueueRecord } from './records.ts'
import { SHELF } from './schema.ts'

/** Counted per partition; `dead` letters are among the others. */
export const COUNTED = ['ready', 'leased', 'scheduled', 'held', 'dead'] as const
type Counted = (typeof COUNTED)[number]

const SUMMED = [...COUNTED, 'created_s', 'created_us', 'deadline_s', 'deadline_us'] as const
const COLUMNS = ['part', ...SUMMED].join(', ')

export interface PartitionCounts extends Readonly<Record<Counted, number>> {
  readonly createdSumUs: bigint
  readonly deadlineSumUs: bigint
}

/** A change of one partition's counts; absent means unchanged. */
export interface CountChange extends Readonly<Partial<Record<Counted, number>>> {
  readonly created?: InstantSum
  readonly deadline?: InstantSum
}

export interface InstantSum {
  readonly seconds: bigint
  readonly micros: bigint
}

export const instantSum = (at: Instant, times: number): InstantSum => split(at * BigInt(times))

export const sumOfInstants = (instants: Iterable<Instant>): InstantSum => {
  let total = 0n
  for (const at of instants) total += at
  return split(total)
}

const split = (totalUs: bigint): InstantSum => ({
  seconds: totalUs / 1_000_000n,
  micros: totalUs % 1_000_000n,
})

/** The same in SQL; NULL without rows. */
export const seconds = (column: string): string => `sum(${column} / 1000000)`
export const micros = (column: string): string => `sum(${column} % 1000000)`

export const negated = ({ seconds, micros }: InstantSum): InstantSum => ({
  seconds: -seconds,
  micros: -micros,
})

/** Sum of the lease deadlines of items; those without one add nothing. */
export const leaseDeadlines = (items: readonly { readonly leaseDeadline: Instant | null }[]): InstantSum =>
  sumOfInstants(items.flatMap(({ leaseDeadline }) => leaseDeadline ?? []))

/** The loss of a partition when these items leave a shelf. */
export function lossOf(
  items: readonly {
    readonly leased: boolean
    readonly createdAt: Instant
    readonly leaseDeadline: Instant | null
  }[],
  shelf: number,
): CountChange {
  const leased = items.filter((item) => item.leased)
  return {
    ready: shelf === SHELF.queue ? leased.length - items.length : 0,
    leased: -leased.length,
    held: shelf === SHELF.held ? -items.length : 0,
    created: negated(sumOfInstants(items.map(({ createdAt }) => createdAt))),
    deadline: negated(leaseDeadlines(leased)),
  }
}

export const partitionCounter = counter({
  name: 'counts',
  lock: 'queues.fold',
  deltas: 'partition_deltas',
  given: Object.fromEntries([['part', 'int'], ...SUMMED.map((column) => [column, 'bigint'] as const)]),
  totals: { parts: { table: 'partition_totals', keys: ['part'], sums: SUMMED } },
})

/**
 * Appends one delta for part `$1` when `source` has a row, in a PostgreSQL statement that is a whole transaction. The nine values of
 * `countValues` start at `$<first>`.
 */
export const countChangeFrom = (source: string, first: number): string => {
  const values = SUMMED.map((_, i) => `$${first + i}::bigint`).join(', ')
  return `INSERT INTO bartleby.partition_deltas (${COLUMNS}) SELECT $1, ${values} FROM ${source}`
}

/** Appends a delta of sums that a PostgreSQL statement learns while it runs, for part `$1`. */
export const countedFrom = (
  source: string,
  sums: Readonly<Partial<Record<(typeof SUMMED)[number], string>>>,
): string =>
  `INSERT INTO bartleby.partition_deltas (${COLUMNS})
   SELECT $1, ${SUMMED.map((column) => sums[column] ?? '0').join(', ')} FROM ${source}`

/** A change in the order of the columns. */
export const countValues = (change: CountChange): Value[] => [
  change.ready ?? 0,
  change.leased ?? 0,
  change.scheduled ?? 0,
  change.held ?? 0,
  change.dead ?? 0,
  change.created?.seconds ?? 0n,
  change.created?.micros ?? 0n,
  change.deadline?.seconds ?? 0n,
  change.deadline?.micros ?? 0n,
]

export class CountChanges {
  readonly #changes = new Map<number, CountChange>()

  add(part: number, change: CountChange): void {
    const known = this.#changes.get(part)
    this.#changes.set(part, known === undefined ? change : sumOf(known, change))
  }

  readyOf(part: number): number {
    return this.#changes.get(part)?.ready ?? 0
  }

  /** Adds the changes to the transaction. Call it last. */
  write(tx: Transaction): void {
    const parts = [...this.#changes].sort(([a], [b]) => a - b)
    partitionCounter.add(
      tx,
      parts.map(([part, change]) => [part, ...countValues(change)]),
    )
  }
}

const sumOf = (a: CountChange, b: CountChange): CountChange => ({
  ready: (a.ready ?? 0) + (b.ready ?? 0),
  leased: (a.leased ?? 0) + (b.leased ?? 0),
  scheduled: (a.scheduled ?? 0) + (b.scheduled ?? 0),
  held: (a.held ?? 0) + (b.held ?? 0),
  dead: (a.dead ?? 0) + (b.dead ?? 0),
  created: sumOfSums(a.created, b.created),
  deadline: sumOfSums(a.deadline, b.deadline),
})

const sumOfSums = (a: InstantSum = NO_INSTANTS, b: InstantSum = NO_INSTANTS): InstantSum => ({
  seconds: a.seconds + b.seconds,
  micros: a.micros + b.micros,
})
const NO_INSTANTS: InstantSum = { seconds: 0n, micros: 0n }

/** Adds the change of one partition to the transaction. */
export const count = (tx: Transaction, part: number, change: CountChange): void =>
  partitionCounter.add(tx, [[part, ...countValues(change)]])

const SUMS = SUMMED.map((column) => `sum(${column}) AS ${column}`).join(', ')

/** Cost: one row per partition, plus the unfolded tail. */
const readAll = partitionCounter.read(
  'counts.read',
  'parts',
  (counted) => `SELECT part, ${SUMS} FROM ${counted} GROUP BY part`,
  { where: 'part = ANY($1::int[])', bigints: true },
)

type CountsRow = Readonly<Record<'part' | (typeof SUMMED)[number], Integer>>

/** Counts in the order of `parts`. */
export async function readCounts(session: Session, parts: readonly number[]): Promise<PartitionCounts[]> {
  const rows = await session.rows<CountsRow>(readAll, parts)
  const byPart = new Map(rows.map((row) => [Number(row.part), row]))
  return parts.map((part) => {
    const row = byPart.get(part)
    return {
      ready: Number(row?.ready ?? 0),
      leased: Number(row?.leased ?? 0),
      scheduled: Number(row?.scheduled ?? 0),
      held: Number(row?.held ?? 0),
      dead: Number(row?.dead ?? 0),
      createdSumUs: BigInt(row?.created_s ?? 0) * 1_000_000n + BigInt(row?.created_us ?? 0),
      deadlineSumUs: BigInt(row?.deadline_s ?? 0) * 1_000_000n + BigInt(row?.deadline_us ?? 0),
    }
  })
}

/** Ready items per partition; `gained` adds what the current transaction has made ready. */
export async function readReadyCounts(
  session: Session,
  partitions: readonly Partition[],
  gained: (part: number) => number,
): Promise<number[]> {
  const counts = await readCounts(
    session,
    partitions.map(({ part }) => part),
  )
  return partitions.map(({ part }, i) => (counts[i]?.ready ?? 0) + gained(part))
}

/** Index of the smallest count; the lowest number wins a tie. */
export function emptiest(counts: readonly number[]): number {
  let best = 0
  for (let i = 1; i < counts.length; i++) if ((counts[i] ?? 0) < (counts[best] ?? 0)) best = i
  return best
}

/** The partition with the fewest ready items, where the next item or letter goes. */
export async function emptiestPartition(
  session: Session,
  queue: QueueRecord,
  gained: (part: number) => number = () => 0,
): Promise<Partition> {
  const [first] = queue.partitions
  if (first === undefined) throw new Error(`queue '${queue.queueName}' has no partitions`)
  if (queue.partitions.length === 1) return first
  return queue.partitions[emptiest(await readReadyCounts(session, queue.partitions, gained))] ?? first
}
