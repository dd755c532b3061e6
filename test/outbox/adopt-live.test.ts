/** The great table of a running shop: adopted while it is written and read, by a process that is killed on the way. */
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readLayout } from '../../src/sources/outbox/table/layout.ts'
import { PATIENCE_MS, sizeOf } from '../world/limits.ts'
import { seededRandom } from '../world/random.ts'
import { barePostgres, type FreshStore } from '../world/stores.ts'
import { type Adoption, startAdoption } from './adopt-process.ts'
import { connect, type IdType, makeLegacyTable, oldProducer, oldReader } from './legacy-table.ts'

/** What it has said when a kill is due, a moment later: at its start, between chunks, at the indexes, at the end. */
const KILLS = [/columns/, /./, /./, /✓ give keys to rows/, /_tenant_key/, /refuse new rows/]

const TABLES: readonly { readonly id: IdType; readonly rows: number }[] = [
  { id: 'bigint', rows: sizeOf(20_000, 200_000) },
  { id: 'uuid', rows: sizeOf(12_000, 60_000) },
]
/** A dozen or two of chunks, so that the kills between them do not meet the last one. */
const CHUNK = sizeOf('2000', '5000')

let place: FreshStore
let client: pg.Client

beforeEach(async () => {
  place = await barePostgres()
  client = await connect(place.url)
})

afterEach(async () => {
  await client.end()
  await place.dispose()
})

const theOne = async (sql: string): Promise<unknown> =>
  Object.values((await client.query({ text: sql })).rows[0])[0]

describe.each(TABLES)('a table of $rows rows with ids of type $id', ({ id, rows }) => {
  it(`is adopted while its producer and reader go on, through ${KILLS.length} kills`, async () => {
    const random = seededRandom()
    const seed = `BARTLEBY_TEST_SEED=${random.seed}`
    await makeLegacyTable(client, id, rows)
    const programs = [await oldProducer(place.url), await oldReader(place.url)]
    const adopt = () => startAdoption('--url', place.url, '--naming', 'pascal', '--enforce', '--chunk', CHUNK)
    let adoption: Adoption | undefined
    try {
      for (const word of KILLS) {
        adoption = adopt()
        await adoption.said(word)
        await pause(random.whole(0, sizeOf(250, 500)))
        adoption.child.kill('SIGKILL')
        await adoption.ended
      }
      adoption = adopt()
      const { code, out, err } = await adoption.ended
      expect(code, `${seed}\n${err}`).toBe(0)
      expect(out).toMatch(/keys missing {2}0\n/)
    } finally {
      adoption?.child.kill('SIGKILL')
      await Promise.all(programs.map((program) => program.stop()))
    }
    for (const program of programs) {
      expect(program.failures, seed).toEqual([])
      expect(program.done, seed).toBeGreaterThan(10)
      expect(program.slowestMs, seed).toBeLessThan(sizeOf(PATIENCE_MS, 5_000))
    }
    expect(await theOne('SELECT count(*)::int FROM "OutboxMessages" WHERE "IdempotencyKey" IS NULL')).toBe(0)
    expect(await theOne('SELECT count(*)::int FROM "OutboxMessages"')).toBe(rows + (programs[0]?.done ?? 0))
    // What was processed before is not delivered again.
    const forgotten = `SELECT count(*)::int FROM "OutboxMessages"
      WHERE "IsProcessed" AND "RetryCount" = 0 AND "ProcessedAt" IS NULL`
    expect(await theOne(forgotten), seed).toBe(0)
    expect(await theOne('SELECT count(*)::int FROM pg_index WHERE NOT indisvalid')).toBe(0)
    const notNull = `SELECT attnotnull FROM pg_attribute WHERE attrelid = '"OutboxMessages"'::regclass AND attname = 'IdempotencyKey'`
    expect(await theOne(notNull)).toBe(true)
    const run = async (sql: string, parameters: readonly unknown[]) =>
      (await client.query(sql, [...parameters])).rows
    expect(await readLayout('postgres', { naming: 'pascal' }, run)).toMatchObject({
      hasFlag: true,
      hasKeys: true,
      hasWake: true,
    })
  })
})
