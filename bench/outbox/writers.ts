/** Connections of an application that writes orders and messages, on either store. */
import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import pgLibrary from 'pg'
import type { NewMessage } from '../../src/sources/outbox/index.ts'
import { nameTable } from '../../src/sources/outbox/table/table-names.ts'
import { TABLE } from './table.ts'

/** One connection; a transaction is begun on it when it is passed on. Exactly one of `pg` and `sqlite` is there. */
export interface Connection {
  readonly pg: pgLibrary.Client | null
  readonly sqlite: DatabaseSync | null
  /** Plain SQL: all messages in one statement. */
  insert(messages: readonly NewMessage[]): Promise<void>
}

export type Write = (connection: Connection, messages: readonly NewMessage[]) => Promise<void>

export interface Writers {
  readonly isSqlite: boolean
  /** Runs one transaction for each list of messages, on all connections; gives the milliseconds. */
  timed(each: readonly (readonly NewMessage[])[], write: Write): Promise<number>
  /** Says that a dispatcher waits, or that none does, while one listens. */
  setWaiting(waiting: boolean): Promise<void>
  close(): Promise<void>
}

export const openWriters = (store: string, connections: number): Promise<Writers> =>
  store.startsWith('sqlite:') ? openSqlite(store.slice('sqlite:'.length)) : openPostgres(store, connections)

const columns = [
  'tenant_id',
  'event_type',
  'payload',
  'idempotency_key',
  'ordering_key',
  'headers',
  'correlation_id',
]

const valuesOf = ({ tenantId, eventType, payload, correlationId }: NewMessage) =>
  [
    tenantId,
    eventType,
    Buffer.from(JSON.stringify(payload)),
    randomUUID(),
    null,
    null,
    correlationId ?? null,
  ] as const

async function openPostgres(url: string, count: number): Promise<Writers> {
  const { wake, channel } = nameTable()
  const clients = await Promise.all(
    Array.from({ length: count }, async () => {
      const client = new pgLibrary.Client({ connectionString: url })
      await client.connect()
      return client
    }),
  )
  const listener = new pgLibrary.Client({ connectionString: url })
  await listener.connect()
  await listener.query(`LISTEN ${channel}`)
  const order = {
    name: 'order',
    text: 'INSERT INTO orders (customer, total) VALUES ($1, $2)',
    values: ['customer-1', 7],
  }
  return {
    isSqlite: false,
    async timed(each, write) {
      let next = 0
      const lane = async (client: pgLibrary.Client) => {
        const connection: Connection = { pg: client, sqlite: null, insert: insertOn(client) }
        for (let messages = each[next++]; messages !== undefined; messages = each[next++]) {
          await client.query('BEGIN')
          await client.query(order)
          await write(connection, messages)
          await client.query('COMMIT')
        }
      }
      const startMs = performance.now()
      await Promise.all(clients.map(lane))
      return performance.now() - startMs
    },
    async setWaiting(waiting) {
      await listener.query(`UPDATE ${wake.sqlTable} SET waiting = $1`, [waiting])
    },
    async close() {
      await Promise.all([...clients, listener].map((client) => client.end()))
    },
  }
}

const insertOne = {
  name: 'one',
  text: `INSERT INTO ${TABLE} (${columns.join(', ')}) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`,
}
const insertMany = {
  name: 'many',
  text: `INSERT INTO ${TABLE} (${columns.join(', ')})
    SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::uuid[], $5::text[], $6::json[], $7::text[]) RETURNING id`,
}

const insertOn =
  (client: pgLibrary.Client): Connection['insert'] =>
  async (messages) => {
    const rows = messages.map(valuesOf)
    const [first] = rows
    if (first === undefined) return
    const values = rows.length === 1 ? [...first] : columns.map((_, at) => rows.map((row) => row[at]))
    await client.query({ ...(rows.length === 1 ? insertOne : insertMany), values })
  }

async function openSqlite(path: string): Promise<Writers> {
  const file = new DatabaseSync(path)
  file.exec('PRAGMA synchronous = FULL; PRAGMA busy_timeout = 1000')
  const order = file.prepare('INSERT INTO orders (customer, total) VALUES (?, ?)')
  const row = `(${columns.map(() => '?').join(', ')})`
  const inserts = new Map<number, ReturnType<DatabaseSync['prepare']>>()
  const insertOf = (count: number) => {
    const known =
      inserts.get(count) ??
      file.prepare(
        `INSERT INTO ${TABLE} (${columns.join(', ')}) VALUES ${Array(count).fill(row).join(', ')} RETURNING id`,
      )
    inserts.set(count, known)
    return known
  }
  const connection: Connection = {
    pg: null,
    sqlite: file,
    insert: async (messages) => void insertOf(messages.length).all(...messages.flatMap(valuesOf)),
  }
  return {
    isSqlite: true,
    async timed(each, write) {
      const startMs = performance.now()
      for (const messages of each) {
        file.exec('BEGIN IMMEDIATE')
        order.run('customer-1', 7)
        await write(connection, messages)
        file.exec('COMMIT')
      }
      return performance.now() - startMs
    },
    setWaiting: async () => {},
    close: async () => file.close(),
  }
}
