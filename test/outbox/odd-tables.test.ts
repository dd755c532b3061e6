/** Tables of others have columns of all kinds, and rows that nobody would write today: all of them are delivered. */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { TestClock } from '../../src/core/test-clock.ts'
import { adoptTable } from '../../src/sources/outbox/adopt/adopt.ts'
import { createDispatcher } from '../../src/sources/outbox/dispatcher/create-dispatcher.ts'
import { type FreshStore, freshPostgres, freshSqlite } from '../world/stores.ts'

interface OddTable {
  readonly name: string
  /** The columns id, tenant_id, event_type, payload, created_at and perhaps ordering_key or idempotency_key. */
  readonly columns: string
  /** Values of its rows, in the order of its columns; the payload is 'a', 'b' … */
  readonly rows: readonly string[]
}

const POSTGRES: readonly OddTable[] = [
  {
    name: 'times that are missing or have no end',
    columns: 'id bigint PRIMARY KEY, tenant_id text, event_type text, payload text, created_at timestamptz',
    rows: [`1, 't', 'x', 'a', NULL`, `2, 't', 'x', 'b', 'infinity'`, `3, 't', 'x', 'c', '-infinity'`],
  },
  {
    name: 'tenants that are missing, in a line',
    columns:
      'id uuid PRIMARY KEY, tenant_id text, event_type text, payload json, created_at timestamp, ordering_key text',
    rows: [
      `gen_random_uuid(), NULL, 'x', '"a"', '2026-01-01', 'k'`,
      `gen_random_uuid(), NULL, 'x', '"b"', '2026-01-02', 'k'`,
    ],
  },
  {
    name: 'numbers as tenants and lines, keys as text',
    columns: `id text PRIMARY KEY, tenant_id integer, event_type varchar(20), payload jsonb, created_at timestamptz,
      ordering_key integer, idempotency_key varchar(36)`,
    rows: [
      `'m1', 1, 'x', '"a"', '2026-01-01', 7, gen_random_uuid()::text`,
      `'m2', 1, 'x', '"b"', '2026-01-02', 7, NULL`,
    ],
  },
]

const SQLITE: readonly OddTable[] = [
  {
    name: 'numbers as tenants and lines',
    columns:
      'id INTEGER PRIMARY KEY, tenant_id INTEGER, event_type TEXT, payload TEXT, created_at TEXT, ordering_key INTEGER',
    rows: [`1, 1, 'x', 'a', '2026-01-01', 7`, `2, 1, 'x', 'b', '2026-01-02', 7`],
  },
  {
    name: 'times in whole numbers of another type, missing, and tenants that are missing',
    columns:
      'id INTEGER PRIMARY KEY, tenant_id TEXT, event_type TEXT, payload BLOB, created_at BIGINT, ordering_key TEXT',
    rows: [`1, 't', 'x', 'a', 1767225600000000`, `2, NULL, 'x', 'b', NULL`, `3, NULL, 'x', 'c', 1`].map(
      (row) => `${row}, 'k'`,
    ),
  },
  {
    name: 'ids beyond what a double holds',
    columns: 'id INTEGER PRIMARY KEY, tenant_id TEXT, event_type TEXT, payload TEXT, created_at DATETIME',
    rows: [`9007199254740993, 't', 'x', 'a', 1767225600000`, `9007199254740995, 't', 'x', 'b', 'nonsense'`],
  },
]

let store: FreshStore
afterEach(() => store.dispose())

/** Delivers all rows, each after one failure; gives how often each was delivered, and what is left in the table. */
async function deliverAll(rows: number): Promise<{ delivered: string[]; tried: number }> {
  const clock = new TestClock()
  clock.freeze(clock.now())
  const failedOnce = new Set<string>()
  const delivered: string[] = []
  let tried = 0
  const dispatcher = createDispatcher({
    url: store.url,
    clock,
    retention: { processed: 1, keys: 2 },
    async transport({ id, payload }) {
      tried++
      if (!failedOnce.has(id)) {
        failedOnce.add(id)
        throw new Error('once')
      }
      delivered.push(Buffer.from(payload).toString().replaceAll('"', ''))
    },
  })
  try {
    for (let round = 0; round <= rows + 1; round++) {
      await dispatcher.drain()
      clock.advance(60_000_000n)
    }
    clock.advance(2n * 86_400_000_000n)
    const first = await dispatcher.purge()
    clock.advance(60_000_000n)
    const second = await dispatcher.purge()
    expect(first.rows + second.rows).toBe(rows)
  } finally {
    await dispatcher.stop()
  }
  return { delivered: delivered.toSorted(), tried }
}

const letters = (rows: readonly string[]) => rows.map((_, i) => String.fromCharCode(97 + i))

describe('a table of others on PostgreSQL', () => {
  it.each(POSTGRES)('with $name', async ({ columns, rows }) => {
    store = await freshPostgres()
    const client = new pg.Client({ connectionString: store.url })
    await client.connect()
    await client.query(`CREATE TABLE outbox_messages (${columns})`)
    await adoptTable(store.url, {})
    const names = columns.split(',').flatMap((column) => /^\s*(\w+)/.exec(column)?.[1] ?? [])
    for (const row of rows)
      await client.query(`INSERT INTO outbox_messages (${names.join(', ')}) VALUES (${row})`)
    await client.end()
    expect(await deliverAll(rows.length)).toEqual({ delivered: letters(rows), tried: 2 * rows.length })
  })
})

describe('a table of others on SQLite', () => {
  it.each(SQLITE)('with $name', async ({ columns, rows }) => {
    store = await freshSqlite()
    const file = new DatabaseSync(store.url.slice('sqlite:'.length))
    file.exec(`CREATE TABLE outbox_messages (${columns})`)
    await adoptTable(store.url, {})
    const names = columns.split(',').flatMap((column) => /^\s*(\w+)/.exec(column)?.[1] ?? [])
    for (const row of rows) file.exec(`INSERT INTO outbox_messages (${names.join(', ')}) VALUES (${row})`)
    file.close()
    expect(await deliverAll(rows.length)).toEqual({ delivered: letters(rows), tried: 2 * rows.length })
  })
})
