/** Inserts rows, on each database in its own way. Statements are bounded, and so is memory. */
import { listFor } from '../../../store/database.ts'
import type { AdapterRow } from '../adapters/adapter.ts'
import { existingOf } from '../sql/existing.ts'
import {
  type InsertShape,
  insertManyOnPostgres,
  insertOnPostgres,
  insertOnSqlite,
  madeOnSqlite,
  OPTIONAL_VALUES,
} from '../sql/insert.ts'
import type { Layout, RunSql } from '../table/layout.ts'
import { makesIds, type NewRow } from './fit.ts'

/** Undefined where the key was there already. */
type MadeId = string | undefined

export interface Insertion {
  /** `createdAt` in microseconds; null: now. */
  one(run: RunSql, row: NewRow, createdAt: bigint | null): Promise<MadeId>
  /** Created from `createdAt` on, in their order; ids in the same order. */
  many(run: RunSql, rows: readonly NewRow[], createdAt: bigint | null): Promise<readonly MadeId[]>
}

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

/** Of rows with the same tenant and key the first has the id. */
function idsAmong(inserted: readonly AdapterRow[], rows: readonly NewRow[]): readonly MadeId[] {
  const ids = new Map(inserted.map((row) => [`${row.key} ${row.tenant}`, idOf(row)]))
  return rows.map(({ key, tenantId }) => {
    const name = `${key} ${tenantId}`
    const id = ids.get(name)
    ids.delete(name)
    return id
  })
}

function idsByKey(inserted: readonly AdapterRow[], rows: readonly NewRow[]): readonly MadeId[] {
  const ids = new Map(inserted.map((row) => [row.key, idOf(row)]))
  return rows.map(({ key }) => ids.get(key))
}

interface Placed {
  readonly nth: number
  readonly row: NewRow
}

const MOST_ROWS = 1_000
/** Payload in one statement: PostgreSQL takes 1 GB, memory a multiple of what is sent. */
const MOST_PAYLOAD = 4_000_000

/** In the order of the statement's lists. */
const LISTED = ['tenantId', 'eventType', 'key', 'id', 'orderingKey', 'headers', 'correlationId'] as const

/** One statement for a row, one for a thousand. */
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
  // Where times or ids tell rows of a statement apart, they can be inserted in any order.
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
      // Sorted rows need times of their own, with one beginning for all statements.
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

/** Payloads in one piece, with starts (from 1) and sizes. */
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

/** Few sizes, so that statements are prepared once. */
const SIZES = [500, 100, 20, 4, 1]

export function insertionOnSqlite(layout: Layout): Insertion {
  const hasId = makesIds(layout)
  const whereMade = madeOnSqlite(layout)
  const find = existingOf(layout)
  const textOf = remembered(
    (shape: InsertShape & { readonly rows: number }) => insertOnSqlite(layout, { ...shape, hasId }),
    ({ rows, guarded, timed }) => `${rows} ${guarded} ${timed}`,
  )

  function parametersOf(row: NewRow, createdAt: bigint | null): unknown[] {
    const { tenantId, eventType, payload, key, orderingKey, headers, correlationId, id } = row
    const parameters: unknown[] = [tenantId, eventType, payload, key, orderingKey, headers, correlationId]
    if (hasId) parameters.push(id)
    if (createdAt !== null) parameters.push(String(createdAt))
    return parameters
  }

  /** Rows that were all inserted have consecutive ids. */
  async function idsOf(run: RunSql, rows: readonly NewRow[]): Promise<readonly MadeId[]> {
    if (hasId) return rows.map(({ id }) => id ?? undefined)
    const [made] = await run(whereMade, [String(rows.length)])
    // Another insert may have used the connection meanwhile.
    if (made?.first !== rows[0]?.key || made?.key !== rows.at(-1)?.key)
      return (await find(run, rows)).map((existing) => existing?.id)
    const first = BigInt(String(made?.last)) - BigInt(rows.length) + 1n
    return rows.map((_, at) => String(first + BigInt(at)))
  }

  async function insert(run: RunSql, rows: readonly NewRow[], createdAt: bigint | null) {
    const guarded = rows.some(({ keyIsGiven }) => keyIsGiven)
    const text = textOf({ guarded, timed: createdAt !== null, rows: rows.length })
    const parameters = rows.flatMap((row) => parametersOf(row, createdAt))
    const inserted = await run(text, parameters)
    if (rows.length === 1) return [idOf(inserted[0])]
    return guarded ? idsAmong(inserted, rows) : idsOf(run, rows)
  }

  return {
    one: async (run, row, createdAt) => (await insert(run, [row], createdAt))[0],
    async many(run, rows, createdAt) {
      const made: MadeId[] = []
      for (const chunk of chunksOf(rows)) made.push(...(await insert(run, chunk, createdAt)))
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
