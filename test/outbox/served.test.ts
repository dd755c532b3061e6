/** Outboxes in a server: from a row that somebody wrote to the receiver, to the letter, and back. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ServedOutbox } from '../../src/sources/outbox/served/served-outbox.ts'
import { openDatabase } from '../../src/store/open.ts'
import { verifyStore } from '../../src/verify/verify.ts'
import { OutboxStore } from '../world/outbox.ts'
import { type ServerHere, startServer } from '../world/server.ts'
import { type FreshStore, stores } from '../world/stores.ts'

interface Post {
  readonly key: string
  readonly type: string
  readonly body: string
}

describe.each(stores)('outboxes of a server on $name', (kind) => {
  let office: FreshStore
  let shop: OutboxStore
  let receiver: Server
  let server: ServerHere
  let posts: Post[]
  let status: number

  beforeEach(async () => {
    posts = []
    status = 200
    receiver = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk) => chunks.push(chunk))
      request.on('end', () => {
        posts.push({
          key: String(request.headers['idempotency-key']),
          type: String(request.headers['x-event-type']),
          body: Buffer.concat(chunks).toString(),
        })
        response.writeHead(status).end('no')
      })
    })
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    office = await kind.fresh()
    shop = await OutboxStore.open(kind)
    // A server that listens on a port has an address with one.
    const { port } = receiver.address() as AddressInfo
    server = await startServer({
      store: office.url,
      testApi: false,
      outbox: [
        { name: 'shop', url: shop.url, transport: `http://127.0.0.1:${port}/events`, maxRetries: 0 },
        { name: 'mail', transport: 'queue:mail' },
      ],
    })
  })
  afterEach(async () => {
    await server.stop()
    receiver.closeAllConnections()
    await new Promise((resolve) => receiver.close(resolve))
    await shop.close()
    const db = openDatabase(office.url, { poolSize: 1 })
    const { clean } = await verifyStore(db)
    await db.close()
    await office.dispose()
    expect(clean).toBe(true)
  })

  const api = async (path: string, init?: RequestInit) => {
    const answer = await fetch(`${server.url}${path}`, init)
    // Each test knows what it asked for.
    return (await answer.json()) as { data: Record<string, never> & { items: Record<string, unknown>[] } }
  }
  const letters = async () => (await api('/api/dlq?engine=outbox')).data.items
  const retry = (rowKey: unknown, body: object = {}) =>
    api(`/api/dlq/outbox/${encodeURIComponent(String(rowKey))}/retry`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  /** Producers that do not use our writer announce nothing. */
  const announce = () => {
    for (const post of server.office.outboxes.all()) if (post instanceof ServedOutbox) post.wake()
  }

  it('post what is written elsewhere, make a letter of what is refused, and confirm it when a retry arrives', async () => {
    status = 422
    await shop.insert({ payload: '{"n": 1}', type: 'order.placed' })
    announce()
    await expect.poll(letters).toHaveLength(1)
    const [letter] = await letters()
    expect(letter).toMatchObject({
      source: 'outbox',
      originalQueue: 'shop',
      instanceId: 't',
      status: 'Pending',
      reason: 'rejected',
      errorClass: 'PermanentError',
    })
    expect((await api('/api/outbox?outbox=shop&status=dead')).data.items).toMatchObject([
      { eventType: 'order.placed', retryCount: 1, processedAt: null },
    ])
    status = 200
    await retry(letter?.rowKey)
    await expect.poll(async () => (await letters())[0]?.confirmedAtUtc).toBeTruthy()
    expect(posts.map(({ body }) => body)).toEqual(['{"n": 1}', '{"n": 1}'])
    expect(new Set(posts.map(({ key }) => key)).size).toBe(1)
    expect((await api('/api/outbox?outbox=shop&status=processed')).data.items).toHaveLength(1)
  })

  it('reopen the letter when the retry dies, and send what an operator made of it', async () => {
    status = 400
    await shop.insert({ payload: 'broken' })
    announce()
    await expect.poll(letters).toHaveLength(1)
    const rowKey = (await letters())[0]?.rowKey
    await retry(rowKey)
    await expect.poll(async () => [posts.length, (await letters())[0]?.status]).toEqual([2, 'Pending'])
    status = 200
    await retry(rowKey, { payload: 'mended' })
    await expect.poll(async () => (await letters())[0]?.confirmedAtUtc).toBeTruthy()
    expect(posts.map(({ body }) => body)).toEqual(['broken', 'broken', 'mended'])
    expect(await letters()).toHaveLength(1)
  })

  it('put messages of the own store into a queue, exactly once', async () => {
    await server.office.queues.create({
      queueName: 'mail',
      leaseTimeout: '1m',
      expireTimeout: '24h',
      requestedPartitions: 1,
    })
    const db = openDatabase(office.url, { poolSize: 1 })
    const insert = {
      name: 'test.outboxMail',
      postgres: `INSERT INTO outbox_messages (tenant_id, event_type, payload) SELECT 't', 'mail', convert_to(n::text, 'UTF8') FROM generate_series(1, 300) AS n`,
      sqlite: `WITH RECURSIVE n(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < 300)
        INSERT INTO outbox_messages (tenant_id, event_type, payload) SELECT 't', 'mail', CAST(n AS TEXT) FROM n`,
      bigints: false,
    }
    await expect.poll(() => db.transaction('insert', (tx) => tx.run(insert)).catch(() => 0)).toBe(300)
    await db.close()
    announce()
    const got: string[] = []
    while (got.length < 300) {
      const { items, partition } = await server.office.queues.lease({
        queueName: 'mail',
        clientId: 'w',
        batchSize: 100,
        requestTimeout: '10s',
      })
      got.push(...items.map(({ payload }) => Buffer.from(payload).toString()))
      await server.office.queues.complete({ queueName: 'mail', partition, ids: items.map(({ id }) => id) })
    }
    expect(got).toEqual(Array.from({ length: 300 }, (_, i) => String(i + 1)))
    await expect
      .poll(async () => (await api('/api/outbox?outbox=mail&status=pending')).data.items)
      .toEqual([])
  })
})
