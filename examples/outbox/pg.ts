/** An order and its message in one transaction, with `pg`. */
import { createDispatcher, createKey, createOutbox, outboxSchema, pgAdapter } from 'bartleby/outbox'
import pg from 'pg'

const url = process.env.DATABASE_URL ?? 'postgres://localhost/shop'
const pool = new pg.Pool({ connectionString: url })
await pool.query('CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, total integer NOT NULL)')
await pool.query(outboxSchema('postgres'))

const outbox = createOutbox({ adapter: pgAdapter() })

/** Commits the order and its message together, or neither. */
async function placeOrder(id: string, total: number) {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await client.query('INSERT INTO orders (id, total) VALUES ($1, $2) ON CONFLICT DO NOTHING', [id, total])
    const added = await outbox.add(client, {
      tenantId: 'shop',
      eventType: 'OrderPlaced',
      payload: { id, total },
      key: createKey('shop', 'order', id, 'placed'),
    })
    if (total === 0) throw new Error('an order of nothing')
    await client.query('COMMIT')
    return added
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
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
await pool.end()
