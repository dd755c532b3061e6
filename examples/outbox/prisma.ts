/** An order and its message in one transaction, with Prisma. */
import { PrismaPg } from '@prisma/adapter-pg'
import { createDispatcher, createKey, createOutbox, outboxSchema, prismaAdapter } from 'bartleby/outbox'
import { PrismaClient } from './generated/client.ts'

const url = process.env.DATABASE_URL ?? 'postgres://localhost/shop'
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) })
await prisma.$executeRaw`CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, total integer NOT NULL)`
await prisma.$executeRawUnsafe(outboxSchema('postgres'))

const outbox = createOutbox({ adapter: prismaAdapter() })

/** Commits the order and its message together, or neither. */
const placeOrder = (id: string, total: number) =>
  prisma.$transaction(async (tx) => {
    await tx.order.upsert({ where: { id }, create: { id, total }, update: {} })
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
await prisma.$disconnect()
