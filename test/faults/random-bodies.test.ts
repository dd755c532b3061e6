/** Thousands of random bodies: each gets a reply of the contract, and what is refused changes nothing. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { later } from '../../src/core/clock.ts'
import { parseTimestamp, ZERO_TIME } from '../../src/core/timestamp.ts'
import { sizeOf } from '../world/limits.ts'
import { CALLS, type Path } from '../world/messages.ts'
import { type ServerHere, startServer } from '../world/server.ts'
import { freshPostgres } from '../world/stores.ts'
import { type Json, jsonCodec, replyJson, Wire } from '../world/wire.ts'
import { type RandomBody, randomBodies } from './bodies.ts'

const PER_RUN = 20

/** Calls that change nothing even when they succeed. */
const READING: ReadonlySet<Path> = new Set<Path>([
  '/v1/queue.stats',
  '/v1/queue.reload',
  '/v1/queues.list',
  '/v1/queues.info',
  '/v1/storage/items.list',
  '/v1/storage/scheduled.list',
])

/** Refusals that a request can bring about by itself. */
const REFUSALS: ReadonlySet<number> = new Set([400, 453, 454, 455])

const memory = async () => ({ url: 'sqlite::memory:', dispose: async () => {} })

describe.each([
  { name: 'SQLite', runs: sizeOf(50, 500), fresh: memory },
  { name: 'PostgreSQL', runs: sizeOf(12, 75), fresh: freshPostgres },
])('random bodies on $name', ({ runs, fresh }) => {
  let place: { readonly url: string; dispose(): Promise<void> }
  let server: ServerHere
  let wire: Wire

  beforeAll(async () => {
    place = await fresh()
    server = await startServer({ store: place.url, testApi: false })
    wire = new Wire(server.url)
  })

  afterAll(async () => {
    await wire.close()
    await server.stop()
    await place.dispose()
  })

  const call = (path: Path, body: Json) => wire.call(jsonCodec, path, body)

  /** Two queues with items in every state; gives the ids of some. */
  async function furnish(): Promise<string[]> {
    const settings = { lease_timeout: '1h', expire_timeout: '2h' }
    await call('/v1/queues.create', { ...settings, queue_name: 'd', requested_partitions: 1 })
    const more = { dead_queue: 'd', max_attempts: 3, requested_partitions: 2 }
    await call('/v1/queues.create', { ...settings, ...more, queue_name: 'q' })
    const items = [{ utf8: 'a' }, { utf8: 'b' }, { utf8: 'c', enqueue_at: '2100-01-01T00:00:00Z' }]
    for (let i = 0; i < 2; i++) {
      await call('/v1/queue.produce', { queue_name: 'q', request_timeout: '1m', items })
    }
    await call('/v1/queue.lease', { queue_name: 'q', client_id: 'f', batch_size: 1, request_timeout: '11ms' })
    const ids: string[] = []
    for (const path of ['/v1/storage/items.list', '/v1/storage/scheduled.list'] as const) {
      const { body } = await call(path, { queue_name: 'q' })
      // The reply of a list, as the contract has it.
      ids.push(...((body.items ?? []) as { id: string }[]).map(({ id }) => id))
    }
    return ids
  }

  /** Leases that end this soon would end between two looks: some bodies shorten the lease timeout. */
  const SOON_US = 2_000_000n

  /** Queues, settings and items as clients see them, once nothing is due any more. */
  async function picture(): Promise<string> {
    for (;;) {
      await server.office.queues.settle()
      const parts = await look()
      const soon = later(server.office.clock.now(), SOON_US)
      // The replies of lists, as the contract has them.
      const items = parts.flatMap(
        (part) => (part.items ?? []) as { is_leased?: boolean; lease_deadline?: string }[],
      )
      const ending = items.some(({ is_leased: leased = false, lease_deadline: deadline = '' }) => {
        const parsed = parseTimestamp(deadline)
        return leased && parsed.ok && parsed.at > ZERO_TIME && parsed.at < soon
      })
      if (!ending) return JSON.stringify(parts)
    }
  }

  async function look(): Promise<Json[]> {
    const parts: Json[] = []
    const { body: queues } = await call('/v1/queues.list', {})
    parts.push(queues)
    // The reply of a list, as the contract has it.
    for (const { queue_name } of (queues.items ?? []) as { queue_name: string }[]) {
      if (queue_name !== 'q' && queue_name !== 'd') continue
      for (const partition of queue_name === 'q' ? [0, 1] : [0]) {
        parts.push((await call('/v1/storage/items.list', { queue_name, partition })).body)
        parts.push((await call('/v1/storage/scheduled.list', { queue_name, partition })).body)
      }
    }
    return parts
  }

  async function send({ path, contentType, bytes }: RandomBody): Promise<number> {
    const headers = { 'content-type': contentType, accept: 'application/json' }
    const reply = await wire.raw(path, { headers, body: bytes })
    if (reply.status !== 200) expect(REFUSALS, Buffer.from(reply.bytes).toString()).toContain(reply.status)
    const body = replyJson(reply, reply.status === 200 ? CALLS[path][1] : 'Reply')
    // The other 454s would mean that the store could not take it.
    if (reply.status === 454) expect(body.message).toMatch(/^request timeout; no items are in the queue/)
    return reply.status
  }

  it(`answers ${runs * PER_RUN} of them as the contract says, and changes nothing for those it refuses`, async () => {
    const known = { queues: ['q', 'd'], ids: await furnish() }
    const statuses = new Map<number, number>()
    await fc.assert(
      fc.asyncProperty(
        fc.array(randomBodies(known), { minLength: PER_RUN, maxLength: PER_RUN }),
        async (bodies) => {
          await furnish()
          let before = await picture()
          for (const body of bodies) {
            const status = await send(body)
            statuses.set(status, (statuses.get(status) ?? 0) + 1)
            if (status === 200 && !READING.has(body.path)) before = await picture()
          }
          expect(await picture()).toBe(before)
        },
      ),
      { numRuns: runs, endOnFailure: true },
    )
    for (const status of [200, 400, 455]) expect(statuses.get(status) ?? 0).toBeGreaterThan(runs)
  })
})
