/**
 * What is rolled back is never delivered, and what is committed is: random interleavings of business transactions, with
 * savepoints, while a dispatcher of another process takes whatever it can see. 1,000 of them in `npm run prove`.
 */
import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { sqliteAdapter } from '../../src/sources/outbox/adapters/libraries.ts'
import { pgAdapter } from '../../src/sources/outbox/adapters/pg.ts'
import { createOutbox } from '../../src/sources/outbox/writing/writer.ts'
import { sizeOf } from '../world/limits.ts'
import { OutboxStore } from '../world/outbox.ts'
import { type Random, seededRandom } from '../world/random.ts'
import { stores } from '../world/stores.ts'
import { Fleet } from './crash-fleet.ts'
import { Recorder } from './crash-recorder.ts'

const INTERLEAVINGS = sizeOf(300, 1_000)
/** Transactions that are open at the same time; SQLite has one writer. */
const AT_ONCE = { postgres: 3, sqlite: 1 }

/** A connection of the application. */
interface Connection {
  run(sql: string): Promise<unknown>
  /** The business change, and the message that tells of it. */
  change(key: string, line: string | null): Promise<unknown>
  close(): Promise<void>
}

const BUSINESS_TABLE = 'CREATE TABLE orders (key text PRIMARY KEY)'
const messageOf = (key: string, line: string | null) => ({
  tenantId: 't',
  eventType: 'ordered',
  payload: { key },
  key,
  ...(line === null ? {} : { orderingKey: line }),
})

async function connectPostgres(url: string): Promise<Connection> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const outbox = createOutbox({ adapter: pgAdapter() })
  return {
    run: (sql) => client.query(sql),
    async change(key, line) {
      await client.query('INSERT INTO orders VALUES ($1)', [key])
      await outbox.add(client, messageOf(key, line))
    },
    close: () => client.end(),
  }
}

async function connectSqlite(url: string): Promise<Connection> {
  const file = new DatabaseSync(url.slice('sqlite:'.length))
  file.exec('PRAGMA busy_timeout = 5000; PRAGMA synchronous = OFF')
  const outbox = createOutbox({ adapter: sqliteAdapter() })
  return {
    run: async (sql) => file.exec(sql === 'BEGIN' ? 'BEGIN IMMEDIATE' : sql),
    async change(key, line) {
      file.prepare('INSERT INTO orders VALUES (?)').run(key)
      await outbox.add(file, messageOf(key, line))
    },
    close: async () => file.close(),
  }
}

/** One transaction, a statement at a time; gives the keys that it has committed at its end. */
async function* transaction(connection: Connection, random: Random): AsyncGenerator<null, readonly string[]> {
  const change = async () => {
    const key = randomUUID()
    await connection.change(key, random.chance(0.3) ? `line ${random.whole(0, 3)}` : null)
    return key
  }
  await connection.run('BEGIN')
  yield null
  const keys: string[] = []
  for (let changes = random.whole(1, 3); changes > 0; changes--) {
    if (random.chance(0.6)) {
      keys.push(await change())
      yield null
      continue
    }
    await connection.run('SAVEPOINT trial')
    const key = await change()
    yield null
    if (random.chance(0.5)) keys.push(key)
    else await connection.run('ROLLBACK TO SAVEPOINT trial')
    await connection.run('RELEASE SAVEPOINT trial')
    yield null
  }
  const commits = random.chance(0.5)
  await connection.run(commits ? 'COMMIT' : 'ROLLBACK')
  return commits ? keys : []
}

/** Some transactions in a random order of their statements. */
async function interleave(connections: readonly Connection[], random: Random): Promise<readonly string[]> {
  const committed: string[] = []
  const open = connections.map((connection) => transaction(connection, random))
  while (open.length > 0) {
    const which = random.whole(0, open.length - 1)
    const step = await open[which]?.next()
    if (random.chance(0.2)) await turn()
    if (step?.done !== true) continue
    committed.push(...step.value)
    open.splice(which, 1)
  }
  return committed
}

describe.each(stores)('a business transaction on $name', (kind) => {
  it(`delivers its messages when it commits, and none when it rolls back, in ${INTERLEAVINGS} random interleavings`, async () => {
    const random = seededRandom()
    const seed = `BARTLEBY_TEST_SEED=${random.seed}`
    const store = await OutboxStore.open(kind)
    await store.query(BUSINESS_TABLE)
    const recorder = await Recorder.open(random)
    const fleet = new Fleet({
      port: recorder.port,
      options: { url: store.url, pollIntervalSeconds: 0.05, batchSize: 20 },
    })
    const connect = kind.name === 'postgres' ? connectPostgres : connectSqlite
    const connections = await Promise.all(
      Array.from({ length: AT_ONCE[kind.name] }, () => connect(store.url)),
    )
    try {
      await fleet.add()
      const committed = new Set<string>()
      for (let i = 0; i < INTERLEAVINGS; i++)
        for (const key of await interleave(connections, random)) committed.add(key)
      await expect.poll(() => recorder.received).toBe(committed.size)
      await fleet.stop()
      expect(fleet.deaths, seed).toEqual([])
      const delivered = [...recorder.receipts.values()].flatMap(({ keys }) => [...keys])
      expect(new Set(delivered), seed).toEqual(committed)
      expect(delivered).toHaveLength(committed.size)
      const orders = await store.query('SELECT key FROM orders')
      expect(new Set(orders.map(({ key }) => key)), seed).toEqual(committed)
      const rows = await store.query(
        'SELECT idempotency_key AS key FROM outbox_messages WHERE processed_at IS NOT NULL',
      )
      expect(new Set(rows.map(({ key }) => key)), seed).toEqual(committed)
      expect(recorder.violations, seed).toEqual([])
      expect(committed.size).toBeGreaterThan(INTERLEAVINGS / 4)
    } finally {
      await fleet.discard()
      await Promise.all(connections.map((connection) => connection.close()))
      await recorder.close()
      await store.close()
    }
  })
})
