/** Series of history: engine, operation and status, each combination known by a small number that never changes. */
import { type Integer, type Session, sql, type Transaction } from '../db/database.ts'

export const HISTORY_STATUSES = ['Succeeded', 'Failed'] as const
export type HistoryStatus = (typeof HISTORY_STATUSES)[number]

/** One row by its unique label. */
const readSeries = sql(
  'history.series',
  'SELECT id FROM bartleby.history_series WHERE engine = $1 AND operation = $2 AND status = $3',
)
const insertSeries = sql(
  'history.insertSeries',
  `INSERT INTO bartleby.history_series (engine, operation, status) VALUES ($1, $2, $3)
   ON CONFLICT (engine, operation, status) DO NOTHING`,
)

/** A series of the engine, on the unique index. */
const seriesOfEngine = sql(
  'history.seriesOfEngine',
  'SELECT id FROM bartleby.history_series WHERE engine = $1 LIMIT 1',
)
/** Whether history has ever had a row of the engine. */
export const seriesHasEngine = async (session: Session, engine: string): Promise<boolean> =>
  (await session.rows(seriesOfEngine, engine)).length > 0

/** Remembered series of one server. */
const MAX_REMEMBERED = 50_000

/** The series that a server has seen. There are a few for every engine. */
export class SeriesNumbers {
  readonly #known = new Map<string, number>()

  /** The number of a series; it is made when it is new. */
  async numberOf(
    work: { readonly tx: Transaction; afterCommit(effect: () => void): void },
    engine: string,
    operation: string,
    status: HistoryStatus,
  ): Promise<number> {
    const key = `${engine} ${operation} ${status}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const number = await seriesNumber(work.tx, engine, operation, status)
    // Only after the commit: a series of a transaction that was rolled back does not exist.
    work.afterCommit(() => {
      if (this.#known.size >= MAX_REMEMBERED) this.#known.clear()
      this.#known.set(key, number)
    })
    return number
  }
}

/** The number of a series, from the store; it is made when it is new. */
export async function seriesNumber(
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
