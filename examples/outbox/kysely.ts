/** An order and its message in one transaction, with Kysely. */
import { createDispatcher, createKey, createOutbox, kyselyAdapter, outboxSchema } from 'bartleby/outbox'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'

interface Tables {
  orders: { id: string; total: number }
}

const url = process.env.DATABASE_URL ?? 'postgres://localhost/shop'
const pool = new pg.Pool({ connectionString: url })
await pool.query('CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, total integer NOT NULL)')
await pool.query(outboxSchema('postgres'))
const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })

const outbox = createOutbox({ adapter: kyselyAdapter() })

/** Commits the order and its message together, or neither. */
const placeOrder = (id: string, total: number) =>
  db.transaction().execute(async (tx) => {
    await tx
      .insertInto('orders')
      .values({ id, total })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    const added = await outbox.add(tx, {
      tenantId: 'shop',
      eventType: 'OrderPlaced',
      payload: { id, total },
      key: createKey('shop', 'order', id, 'placed'),
    })
    if (total === 0) throw new Error('an order of nothing')
    return added
  })

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
await db.destroy()
