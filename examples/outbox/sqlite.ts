/** An order and its message in one transaction, with `node:sqlite`. */
import { DatabaseSync } from 'node:sqlite'
import { createDispatcher, createKey, createOutbox, outboxSchema, sqliteAdapter } from 'bartleby/outbox'

const url = process.env.DATABASE_URL ?? 'sqlite:./shop.db'
const db = new DatabaseSync(url.replace('sqlite:', ''))
db.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000')
db.exec('CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, total INTEGER NOT NULL) STRICT')
db.exec(outboxSchema('sqlite'))

const outbox = createOutbox({ adapter: sqliteAdapter() })

/** Commits the order and its message together, or neither. */
async function placeOrder(id: string, total: number) {
  db.exec('BEGIN IMMEDIATE')
  try {
    db.prepare('INSERT INTO orders (id, total) VALUES (?, ?) ON CONFLICT DO NOTHING').run(id, total)
    const added = await outbox.add(db, {
      tenantId: 'shop',
      eventType: 'OrderPlaced',
      payload: { id, total },
      key: createKey('shop', 'order', id, 'placed'),
    })
    if (total === 0) throw new Error('an order of nothing')
    db.exec('COMMIT')
    return added
  } catch (error) {
    db.exec('ROLLBACK')
    throw error
  }
}

const first = await placeOrder('17', 30)
console.log(`order 17 is placed, and its message written: ${first.idempotencyKey}`)

const again = await placeOrder('17', 30)
console.log(`order 17 once more, the message is there already: ${again.alreadyExisted}`)

await placeOrder('18', 0).catch((error) =>
  console.log(`order 18 is rolled back, its message too: ${error.message}`),
)

// In a service: `await dispatcher.start()`, and `stop()` when it shuts down. Here: what is due now, then the end.
const dispatcher = createDispatcher({
  url,
  transport: async ({ eventType, key, payload }) => {
    console.log(`arrived: ${eventType} ${new TextDecoder().decode(payload)} ${key}`)
  },
})
await dispatcher.drain()
await dispatcher.stop()
db.close()
