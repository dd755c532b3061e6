/** The process that commits, for the measurement of latency. */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { createOutbox, pgAdapter, sqliteAdapter } from '../../src/sources/outbox/index.ts'
import { payload } from '../system.ts'

const { store, count, pauseMs }: { store: string; count: number; pauseMs: number } = JSON.parse(
  process.argv[2] ?? '{}',
)

const message = (n: number) => ({ tenantId: 'tenant-1', eventType: 'order.created', payload: payload(n) })

/** Adds a message and calls `beforeCommit` right before the transaction is committed. */
type Commit = (n: number, beforeCommit: () => void) => Promise<void>

const { commit, close } = store.startsWith('sqlite:')
  ? onSqlite(store.slice('sqlite:'.length))
  : await onPostgres(store)
for (let n = 0; n < count; n++) {
  await setTimeout(pauseMs * (1 + 2 * Math.random()))
  let ns = 0n
  await commit(n, () => {
    ns = process.hrtime.bigint()
  })
  process.send?.({ n, ns: ns.toString() })
}
await close()
process.disconnect?.()

async function onPostgres(url: string): Promise<{ commit: Commit; close(): Promise<void> }> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const outbox = createOutbox({ adapter: pgAdapter() })
  return {
    async commit(n, beforeCommit) {
      await client.query('BEGIN')
      await client.query('INSERT INTO orders (customer, total) VALUES ($1, $2)', ['customer-1', n])
      await outbox.add(client, message(n))
      beforeCommit()
      await client.query('COMMIT')
    },
    close: () => client.end(),
  }
}

function onSqlite(path: string): { commit: Commit; close(): Promise<void> } {
  const file = new DatabaseSync(path)
  file.exec('PRAGMA synchronous = FULL; PRAGMA busy_timeout = 1000')
  const order = file.prepare('INSERT INTO orders (customer, total) VALUES (?, ?)')
  const outbox = createOutbox({ adapter: sqliteAdapter() })
  return {
    async commit(n, beforeCommit) {
      file.exec('BEGIN IMMEDIATE')
      order.run('customer-1', n)
      await outbox.add(file, message(n))
      beforeCommit()
      file.exec('COMMIT')
    },
    close: async () => file.close(),
  }
}
