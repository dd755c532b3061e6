/**
 * A server that is asked to stop in the middle of everything: it ends in time and well, every call is answered, what runs is waited for,
 * what does not end is cut short and handed back, and whoever comes next has it at once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { JOB } from '../../src/sources/webhooks/webhook.ts'
import { openDatabase } from '../../src/store/open.ts'
import { PATIENCE_MS, STOP_PROMISED_MS, sizeOf } from '../world/limits.ts'
import { doorTo } from '../world/proxy.ts'
import { type Answer, Receiver } from '../world/receiver.ts'
import { type RunningServer, spawnServer, startServer } from '../world/server.ts'
import { freshPostgres, stores } from '../world/stores.ts'
import { WebhookClient } from '../world/webhooks/client.ts'
import { jobsIn } from '../world/webhooks/rows.ts'

/** All of a stop, of which attempts that hang take six seconds. */
const STOP_MS = sizeOf(PATIENCE_MS, STOP_PROMISED_MS)
const SENDER = {
  'X-Broker-Channel-Token': 'ctok',
  'X-Broker-Producer-ID': 'shop',
  'X-Broker-Producer-Token': 'ptok',
}

async function register(client: WebhookClient, callbacks: string, ...consumers: string[]): Promise<void> {
  await client.put('/producer/shop', { token: 'ptok' })
  await client.put('/channel/orders', { token: 'ctok' })
  for (const consumer of consumers) {
    const form = { callbackUrl: `${callbacks}/${consumer}` }
    expect((await client.put(`/channel/orders/consumer/${consumer}`, form)).status).toBe(200)
  }
}

const never = () => new Promise<Answer>(() => {})

/** Broadcasts one after the other until the server is gone; gives how many were accepted, and what else was answered. */
async function sendAll({ url }: RunningServer): Promise<{ accepted: number; others: readonly number[] }> {
  const others: number[] = []
  const client = new WebhookClient(url)
  try {
    for (let accepted = 0; ; ) {
      const answer = await client.post('/channel/orders/broadcast', 'x', SENDER).catch(() => null)
      if (answer === null) return { accepted, others }
      if (answer.status === 201) accepted += 1
      else others.push(answer.status)
      await pause(answer.status === 201 ? 10 : 100)
    }
  } finally {
    client.close()
  }
}

// Side by side: most of the time is spent waiting for the end of what does not end.
describe.concurrent.each(stores)('a server on $name that is told to stop under load', (kind) => {
  it('ends with code 0 in time, loses nothing and leaves nothing in its hands', async () => {
    const place = await kind.fresh()
    const receiver = await Receiver.start()
    const server = await spawnServer({ store: place.url, testApi: false })
    const client = new WebhookClient(server.url)
    const db = openDatabase(place.url, { poolSize: 2 })
    try {
      await register(client, receiver.url, 'quick', 'slow', 'hanging')
      receiver.answer('/slow', () => new Promise((resolve) => setTimeout(resolve, 150, { status: 204 })))
      receiver.answer('/hanging', never)
      const senders = [1, 2, 3].map(() => sendAll(server))
      await vi.waitFor(() => expect(receiver.at('/slow').length).toBeGreaterThan(10), {
        timeout: PATIENCE_MS,
      })
      const startedMs = performance.now()
      expect(await server.term()).toBe(0)
      expect(performance.now() - startedMs).toBeLessThan(STOP_MS)
      const sent = await Promise.all(senders)
      // Told that it stops, or cut off while it did; never refused for anything else.
      expect(sent.flatMap(({ others }) => others).filter((status) => status !== 503)).toEqual([])
      const accepted = sent.reduce((sum, each) => sum + each.accepted, 0)
      const jobs = await jobsIn(db)
      // One more for each sender at most, whose answer was lost.
      expect(jobs.length).toBeGreaterThanOrEqual(accepted * 3)
      expect(jobs.length).toBeLessThanOrEqual((accepted + senders.length) * 3)
      for (const job of jobs) {
        expect([JOB.ready, JOB.delivered]).toContain(Number(job.state))
        expect(job).toMatchObject({ claim: null })
        expect(Number(job.attempts)).toBe(0)
      }
      const delivered = (consumer: string) =>
        jobs.filter(({ consumerId, state }) => consumerId === consumer && Number(state) === JOB.delivered)
      expect(delivered('hanging')).toHaveLength(0)
      // What was begun at the others has ended, and was not begun in vain.
      expect(delivered('slow')).toHaveLength(receiver.at('/slow').length)
      expect(delivered('quick')).toHaveLength(receiver.at('/quick').length)

      receiver.answer('/slow', { status: 204 })
      receiver.answer('/hanging', { status: 204 })
      const next = await startServer({ store: place.url, testApi: false })
      try {
        const unsettled = async () =>
          (await jobsIn(db)).filter(({ state }) => Number(state) !== JOB.delivered).length
        await vi.waitFor(async () => expect(await unsettled()).toBe(0), {
          timeout: PATIENCE_MS,
          interval: 100,
        })
      } finally {
        await next.stop()
      }
    } finally {
      client.close()
      await server.kill9()
      await receiver.close()
      await db.close()
      await place.dispose()
    }
  })
})

describe('a server that is told to stop while its PostgreSQL is away', () => {
  it('ends in time, and leaves what it holds to its claim', async () => {
    const place = await freshPostgres()
    const door = await doorTo(place.url)
    const receiver = await Receiver.start()
    const server = await startServer({ store: door.url })
    const client = new WebhookClient(server.url)
    const db = openDatabase(place.url, { poolSize: 1 })
    try {
      await register(client, receiver.url, 'held')
      const { promise, resolve } = Promise.withResolvers<Answer>()
      receiver.answer('/held', () => promise)
      expect((await client.post('/channel/orders/broadcast', 'x', SENDER)).status).toBe(201)
      await vi.waitFor(() => expect(receiver.open).toBe(1), { timeout: PATIENCE_MS })
      door.shut()
      resolve({ status: 204 })
      const startedMs = performance.now()
      await server.stop()
      expect(performance.now() - startedMs).toBeLessThan(STOP_MS)
      const [job] = await jobsIn(db)
      expect(Number(job?.state)).toBe(JOB.inFlight)
      expect(job?.claim).not.toBeNull()
    } finally {
      client.close()
      await server.stop()
      await receiver.close()
      await db.close()
      await door.close()
      await place.dispose()
    }
  })
})
