/**
 * Inserting rows on PostgreSQL: one statement for a row, one for a thousand. Statements are bounded, so that memory is too.
 */
import { listFor } from '../../db/database.ts'
import type { Layout, RunSql } from '../layout.ts'
import { type InsertShape, insertManyOnPostgres, insertOnPostgres, OPTIONAL_VALUES } from '../sql/insert.ts'
import { makesIds, type NewRow } from './fit.ts'
import { type Insertion, idOf, idsAmong, idsByKey, type MadeId, remembered } from './insertion.ts'

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

/** The insertion into one table of PostgreSQL. */
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
