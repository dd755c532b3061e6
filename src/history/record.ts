/** Writing history, in the transaction of what is recorded. Engine, operation and status are one number, the operation kind. */

import type { Instant } from '../core/clock.ts'
import { type Integer, type Session, sql, type Transaction } from '../store/database.ts'
import { type GivenRow, rowsGiven } from '../store/idioms.ts'
import { big, integer, type RowOf, rowShape } from '../store/row.ts'
import { HISTORY_STATUSES, type HistoryStatus } from './shapes.ts'

const readSeries = sql(
  'history.series',
  'SELECT id FROM bartleby.history_series WHERE engine = $1 AND operation = $2 AND status = $3',
)
const insertSeries = sql(
  'history.insertSeries',
  `INSERT INTO bartleby.history_series (engine, operation, status) VALUES ($1, $2, $3)
   ON CONFLICT (engine, operation, status) DO NOTHING`,
)

/** On the unique index. */
const seriesOfEngine = sql(
  'history.seriesOfEngine',
  'SELECT id FROM bartleby.history_series WHERE engine = $1 LIMIT 1',
)
export const historyHasEngine = async (session: Session, engine: string): Promise<boolean> =>
  (await session.rows(seriesOfEngine, engine)).length > 0

const MAX_REMEMBERED = 50_000

/** Operation kinds that a server has seen, a few per engine. */
export class OperationKindNumbers {
  readonly #known = new Map<string, number>()

  /** Made if new. */
  async numberOf(
    work: { readonly tx: Transaction; afterCommit(effect: () => void): void },
    engine: string,
    operation: string,
    status: HistoryStatus,
  ): Promise<number> {
    const key = `${engine} ${operation} ${status}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const number = await operationKindNumber(work.tx, engine, operation, status)
    // Only after the commit: a rollback takes it back.
    work.afterCommit(() => {
      if (this.#known.size >= MAX_REMEMBERED) this.#known.clear()
      this.#known.set(key, number)
    })
    return number
  }
}

/** From the store; made if new. */
export async function operationKindNumber(
  session: Session,
  engine: string,
  operation: string,
  status: HistoryStatus,
): Promise<number> {
  const values = [engine, operation, HISTORY_STATUSES.indexOf(status)] as const
  const [known] = await session.rows<{ id: Integer }>(readSeries, ...values)
  if (known !== undefined) return Number(known.id)
  await session.run(insertSeries, ...values)
  const [made] = await session.rows<{ id: Integer }>(readSeries, ...values)
  if (made === undefined) throw new Error(`the series of ${engine} ${operation} is not there`)
  return Number(made.id)
}

export interface HistoryEntry {
  readonly engine: string
  readonly operation: string
  readonly status: HistoryStatus
  /** null: the correlation id stands for it. */
  readonly instanceId: string | null
  readonly correlationId: string
  readonly createdAt: Instant
  readonly durationMs: number
  /** The letter, and the transition that this records. */
  readonly letterId?: bigint | null
  readonly letterVersion?: number | null
  readonly actor?: string | null
  readonly notes?: string | null
  readonly error?: string | null
  readonly input?: Uint8Array | null
  readonly output?: Uint8Array | null
}

const KEY = rowShape({ series: integer, createdAt: big, id: big })
export type HistoryRow = RowOf<typeof KEY>

const COLUMNS = {
  ...{
    created_at: 'bigint',
    duration_ms: 'bigint',
    letter_id: 'bigint',
    series: 'int',
    letter_version: 'int',
  },
  ...{ correlation_id: 'text', instance_id: 'text', actor: 'text', notes: 'text', error: 'text' },
  ...{ input: 'bytea', output: 'bytea' },
} as const
const NAMES = Object.keys(COLUMNS)
const LISTS = Object.values(COLUMNS).map((type, i) => `$${i + 1}::${type}[]`)

/** Numbered in order. short_key is written as NULL: its default is 1. */
const insertRows = sql(
  'history.insert',
  `INSERT INTO bartleby.history (${NAMES.join(', ')}, short_key) SELECT ${NAMES.map((name) => `given.${name}`).join(', ')}, NULL
   FROM unnest(${LISTS.join(', ')}) AS given (${NAMES.join(', ')}) RETURNING ${KEY.columns}`,
  { bigints: true },
)

export async function recordHistory(
  tx: Transaction,
  entries: readonly HistoryEntry[],
): Promise<HistoryRow[]> {
  if (entries.length === 0) return []
  const numbers = new Map<string, number>()
  const rows: Readonly<Record<keyof typeof COLUMNS, GivenRow[string]>>[] = []
  for (const entry of entries) {
    const { engine, operation, status } = entry
    const key = `${engine} ${operation} ${status}`
    const series = numbers.get(key) ?? (await operationKindNumber(tx, engine, operation, status))
    numbers.set(key, series)
    rows.push({
      created_at: entry.createdAt,
      duration_ms: Math.round(entry.durationMs),
      letter_id: entry.letterId ?? null,
      series,
      letter_version: entry.letterVersion ?? null,
      correlation_id: entry.correlationId,
      instance_id: entry.instanceId,
      actor: entry.actor ?? null,
      notes: entry.notes ?? null,
      error: entry.error ?? null,
      input: entry.input ?? null,
      output: entry.output ?? null,
    })
  }
  return (await rowsGiven<object>(tx, insertRows, rows)).map(KEY.read)
}

/** By primary key. */
const updateRow = sql(
  'history.updateRun',
  'UPDATE bartleby.history SET duration_ms = $4, output = $5 WHERE series = $1 AND created_at = $2 AND id = $3',
)

/** The history row of work over many transactions: the first adds it, later ones update it. The only row that changes, while its run lasts. */
export async function keepRunRow(
  tx: Transaction,
  known: HistoryRow | null,
  entry: HistoryEntry & { readonly output: Uint8Array },
): Promise<HistoryRow> {
  if (known === null) {
    const [row] = await recordHistory(tx, [entry])
    if (row === undefined) throw new Error('the row of a run was not added')
    return row
  }
  const { series, createdAt, id } = known
  await tx.run(updateRow, series, createdAt, id, Math.round(entry.durationMs), entry.output)
  return known
}

export const elapsedMs = (since: Instant, now: Instant): number => Number((now - since) / 1000n)
