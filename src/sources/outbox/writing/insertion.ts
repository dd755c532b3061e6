/** Inserting rows: what both databases promise and need, and how each does it. Statements are bounded, so that memory is too. */
import { listFor } from '../../../store/database.ts'
import type { AdapterRow } from '../adapters/adapter.ts'
import {
  type InsertShape,
  insertManyOnPostgres,
  insertManyOnSqlite,
  insertOneOnSqlite,
  insertOnPostgres,
  madeOnSqlite,
  OPTIONAL_VALUES,
} from '../sql/insert.ts'
import { standingOf } from '../sql/standing.ts'
import type { Layout, RunSql } from '../table/layout.ts'
import { makesIds, type NewRow } from './fit.ts'

/** The id of a row that was inserted; undefined where its key was there already. */
type MadeId = string | undefined

export interface Insertion {
  /** `createdAt` in microseconds; null: now. */
  one(run: RunSql, row: NewRow, createdAt: bigint | null): Promise<MadeId>
  /** All rows, created from `createdAt` on in their order. The ids stand in the order of the rows. */
  many(run: RunSql, rows: readonly NewRow[], createdAt: bigint | null): Promise<readonly MadeId[]>
}

/** Remembers the text that was made for a shape. */
function remembered<Shape>(
  make: (shape: Shape) => string,
  nameOf: (shape: Shape) => string,
): (shape: Shape) => string {
  const known = new Map<string, string>()
  return (shape) => {
    const name = nameOf(shape)
    const text = known.get(name) ?? make(shape)
    known.set(name, text)
    return text
  }
}

const idOf = (row: AdapterRow | undefined): MadeId => (row === undefined ? undefined : String(row.id))

/** The ids of rows among those that were inserted. Of rows with the same tenant and key the first one has it. */
function idsAmong(inserted: readonly AdapterRow[], rows: readonly NewRow[]): readonly MadeId[] {
  const ids = new Map(inserted.map((row) => [`${row.key} ${row.tenant}`, idOf(row)]))
  return rows.map(({ key, tenantId }) => {
    const name = `${key} ${tenantId}`
    const id = ids.get(name)
    ids.delete(name)
    return id
  })
}

/** The same for rows whose keys are all different. */
function idsByKey(inserted: readonly AdapterRow[], rows: readonly NewRow[]): readonly MadeId[] {
  const ids = new Map(inserted.map((row) => [row.key, idOf(row)]))
  return rows.map(({ key }) => ids.get(key))
}

/** A row with its place among those of the call. */
interface Placed {
  readonly nth: number
  readonly row: NewRow
}

const MOST_ROWS = 1_000
/** Of payload in one statement: PostgreSQL takes 1 GB, memory a multiple of what is sent. */
const MOST_PAYLOAD = 4_000_000

/** What a statement for many has in lists, in their order. */
const LISTED = ['tenantId', 'eventType', 'key', 'id', 'orderingKey', 'headers', 'correlationId'] as const

/** The insertion into one table of PostgreSQL: one statement for a row, one for a thousand. */
export function insertionOnPostgres(layout: Layout): Insertion {
  const oneText = remembered(
    (shape: Parameters<typeof insertOnPostgres>[1]) => insertOnPostgres(layout, shape),
    ({ guarded, timed, given }) => `${guarded} ${timed} ${given}`,
  )
  const manyText = remembered(
    (shape: InsertShape) => insertManyOnPostgres(layout, shape),
    ({ guarded, timed }) => `${guarded} ${timed}`,
  )
  const bytes = layout.keepsBytes
  // Where times tell rows of one statement apart, or their ids do, they can be inserted in any order.
  const sortable = makesIds(layout) || !/\(\d\)/.test(layout.types.createdAt)

  async function one(run: RunSql, row: NewRow, createdAt: bigint | null): Promise<MadeId> {
    const given = OPTIONAL_VALUES.filter((column) => row[column] !== null)
    const text = oneText({ guarded: row.keyIsGiven, timed: createdAt !== null, given })
    const parameters: unknown[] = [row.tenantId, row.eventType, row.payload, row.key]
    parameters.push(...given.map((column) => row[column]))
    if (createdAt !== null) parameters.push(String(createdAt))
    return idOf((await run(text, parameters))[0])
  }

  function parametersOf(chunk: readonly Placed[], timed: boolean, since: bigint | null): unknown[] {
    const payloads = chunk.map(({ row }) => row.payload)
    const parameters: unknown[] = LISTED.map((field) => {
      const values = chunk.map(({ row }) => row[field])
      // Empty when there is nothing in it.
      return values.every((value) => value === null) ? '{}' : listFor('postgres', values)
    })
    parameters.push(timed ? `{${chunk.map(({ nth }) => nth).join(',')}}` : '{}')
    if (bytes) parameters.push(...packed(payloads))
    else parameters.push(listFor('postgres', payloads.map(String)))
    if (timed) parameters.push(since === null ? null : String(since))
    return parameters
  }

  return {
    one,
    async many(run, rows, createdAt) {
      const placed = rows.map((row, nth) => ({ nth, row }))
      const guarded = rows.some(({ keyIsGiven }) => keyIsGiven)
      // Two calls with the same keys in another order would wait for each other for ever.
      if (guarded && sortable) placed.sort(byKey)
      const chunks = [...chunksOf(placed)]
      // What is inserted in another order needs times of its own, and these one beginning for all statements.
      const since = createdAt ?? (guarded && chunks.length > 1 ? await presentMicros(run) : null)
      const timed = guarded || since !== null
      const made: MadeId[] = Array(rows.length).fill(undefined)
      for (const chunk of chunks) {
        const [first] = chunk
        if (chunk.length === 1 && first !== undefined) {
          made[first.nth] = await one(run, first.row, since === null ? null : since + BigInt(first.nth))
          continue
        }
        const text = manyText({ guarded, timed })
        const inserted = await run(text, parametersOf(chunk, timed, since))
        const chunkRows = chunk.map(({ row }) => row)
        const ids = guarded ? idsAmong(inserted, chunkRows) : idsByKey(inserted, chunkRows)
        for (const [at, { nth }] of chunk.entries()) made[nth] = ids[at]
      }
      return made
    },
  }

  function* chunksOf(placed: readonly Placed[]): Iterable<readonly Placed[]> {
    let chunk: Placed[] = []
    let size = 0
    for (const each of placed) {
      const { payload } = each.row
      const more = payload.length
      if (chunk.length === MOST_ROWS || (chunk.length > 0 && size + more > MOST_PAYLOAD)) {
        yield chunk
        chunk = []
        size = 0
      }
      chunk.push(each)
      size += more
    }
    if (chunk.length > 0) yield chunk
  }
}

async function presentMicros(run: RunSql): Promise<bigint> {
  const text = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text AS micros'
  return BigInt(String((await run(text, []))[0]?.micros))
}

const byKey = ({ row: a }: Placed, { row: b }: Placed): number =>
  a.tenantId === b.tenantId ? (a.key < b.key ? -1 : a.key > b.key ? 1 : 0) : a.tenantId < b.tenantId ? -1 : 1

/** Payloads in one piece, where each begins (from 1), and how long it is. */
function packed(payloads: readonly (Buffer | string)[]): [Buffer, string, string] {
  const buffers = payloads.map((payload) => (typeof payload === 'string' ? Buffer.from(payload) : payload))
  const sizes = buffers.map(({ length }) => length)
  let next = 1
  const starts = sizes.map((size) => {
    next += size
    return next - size
  })
  return [Buffer.concat(buffers), listFor('postgres', starts), listFor('postgres', sizes)]
}

/** Rows of one statement on SQLite: few sizes, so that statements are prepared once. */
const SIZES = [500, 100, 20, 4, 1]

/** The insertion into one table of SQLite, many rows in one statement. */
export function insertionOnSqlite(layout: Layout): Insertion {
  const hasId = makesIds(layout)
  const whereMade = madeOnSqlite(layout)
  const find = standingOf(layout)
  const oneText = remembered(
    (shape: InsertShape) => insertOneOnSqlite(layout, { ...shape, hasId }),
    ({ guarded, timed }) => `${guarded} ${timed}`,
  )
  const manyText = remembered(
    (shape: InsertShape & { readonly rows: number }) =>
      insertManyOnSqlite(layout, { ...shape, hasId }, shape.rows),
    ({ rows, guarded, timed }) => `${rows} ${guarded} ${timed}`,
  )

  function parametersOf(row: NewRow, createdAt: bigint | null): unknown[] {
    const { tenantId, eventType, payload, key, orderingKey, headers, correlationId, id } = row
    const parameters: unknown[] = [tenantId, eventType, payload, key, orderingKey, headers, correlationId]
    if (hasId) parameters.push(id)
    if (createdAt !== null) parameters.push(String(createdAt))
    return parameters
  }

  /** The ids of rows that were all inserted: the database counted them up, one by one. */
  async function idsOf(run: RunSql, rows: readonly NewRow[]): Promise<readonly MadeId[]> {
    if (hasId) return rows.map(({ id }) => id ?? undefined)
    const [made] = await run(whereMade, [String(rows.length)])
    // Somebody else may have used the connection in the meantime.
    if (made?.first !== rows[0]?.key || made?.key !== rows.at(-1)?.key)
      return (await find(run, rows)).map((standing) => standing?.id)
    const first = BigInt(String(made?.last)) - BigInt(rows.length) + 1n
    return rows.map((_, at) => String(first + BigInt(at)))
  }

  return {
    async one(run, row, createdAt) {
      const guarded = row.keyIsGiven
      const parameters = parametersOf(row, createdAt)
      if (guarded && layout.hasKeys) parameters.push(row.tenantId, row.key)
      return idOf((await run(oneText({ guarded, timed: createdAt !== null }), parameters))[0])
    },
    async many(run, rows, createdAt) {
      const made: MadeId[] = []
      for (const chunk of chunksOf(rows)) {
        const guarded = chunk.some(({ keyIsGiven }) => keyIsGiven)
        const text = manyText({ guarded, timed: createdAt !== null, rows: chunk.length })
        const inserted = await run(
          text,
          chunk.flatMap((row) => parametersOf(row, createdAt)),
        )
        made.push(...(guarded ? idsAmong(inserted, chunk) : await idsOf(run, chunk)))
      }
      return made
    },
  }
}

function* chunksOf(rows: readonly NewRow[]): Iterable<readonly NewRow[]> {
  for (let from = 0; from < rows.length; ) {
    const size = SIZES.find((each) => each <= rows.length - from) ?? 1
    yield rows.slice(from, from + size)
    from += size
  }
}
