/** Contract 1: without a context engines are open; with one, letters outlive the definition of their engine. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FreshStore, stores } from '../../world/stores.ts'
import { Wire } from '../../world/wire.ts'
import { apiCall, captureBody, type Listed, offices, startOffice } from './bed.ts'

const OWN = ['queues', 'outbox', 'webhooks', 'kafka', 'azure', 'http', 'office']
const RUN = { status: 'Succeeded', durationMs: 3 }

/** Ways to ask for one engine. */
const FILTERED = ['/api/dlq', '/api/dlq/total', '/api/counts', '/api/signatures', '/api/history'] as const

interface Engines {
  readonly items: readonly {
    readonly name: string
    readonly queue: string | null
    readonly pending: number
  }[]
}

offices(
  'an office without a context',
  (desk) => {
    const engines = async () => (await desk.ok<Engines>('GET', '/api/engines')).items
    const names = async () => (await engines()).map(({ name }) => name)

    it('has no engines but Bartleby’s own until somebody brings one', async () => {
      expect(await names()).toEqual(OWN)
      for (const path of FILTERED) {
        await desk.refuses('GET', path, { query: { engine: 'hmac' } }, 400, 'engine_unknown', 'hmac', ...OWN)
      }
      await desk.refuses('GET', '/api/dlq/hmac/x', {}, 400, 'engine_unknown', ...OWN)
      await desk.refuses('POST', '/api/dlq/hmac/x/retry', {}, 400, 'engine_unknown', ...OWN)
      await desk.refuses(
        'POST',
        '/api/dlq/expire',
        { body: { olderThanDays: 1, engine: 'hmac' } },
        400,
        ...OWN,
      )
      const plan = { action: 'retry', filter: { engine: 'hmac' } }
      await desk.refuses('POST', '/api/redrives', { body: plan }, 400, 'engine_unknown', ...OWN)
    })

    it('takes a letter under any valid name, which is an engine from then on', async () => {
      const letter = await desk.capture({ engine: 'billing-2', errorMessage: 'no such account' })
      expect(letter).toMatchObject({ engine: 'billing-2', originalQueue: null })
      for (const path of FILTERED) await desk.ok('GET', path, { query: { engine: 'billing-2' } })
      expect((await desk.list({ engine: 'billing-2' })).items).toHaveLength(1)
      expect(await desk.letter(letter)).toMatchObject({ status: 'Pending' })
      await desk.refuses('GET', '/api/dlq/billing-2/x', {}, 404, 'letter_unknown')
      expect(await engines()).toContainEqual(
        expect.objectContaining({ name: 'billing-2', queue: null, pending: 1 }),
      )
      await desk.patch(letter, 'Resolved', 'seen')
      expect((await desk.history({ engine: 'billing-2', operation: 'discard' })).items).toHaveLength(1)
      await desk.refuses('GET', '/api/dlq', { query: { engine: 'billing-3' } }, 400, 'billing-2')
    })

    it('takes runs of any operation, and shows them', async () => {
      const body = { engine: 'audit', operation: 'look-twice', ...RUN }
      await desk.ok('POST', '/api/history', { body }, 201)
      expect((await desk.history({ engine: 'audit', operation: 'look-twice' })).items).toHaveLength(1)
      expect((await desk.history({ operation: 'look-twice' })).items).toHaveLength(1)
      expect(await names()).toContain('audit')
      await desk.refuses(
        'GET',
        '/api/history',
        { query: { engine: 'audit', operation: 'look-thrice' } },
        400,
        'operation_unknown',
        'look-twice',
      )
      const act = { ...body, operation: 'retry' }
      await desk.refuses('POST', '/api/history', { body: act }, 400, 'operation', 'records itself')
    })

    it('refuses names that are taken or malformed', async () => {
      for (const engine of ['queues', 'engines', 'outbox', 'webhooks', 'kafka', 'office']) {
        await desk.refuses('POST', '/api/dlq', { body: captureBody({ engine }) }, 400, engine, 'own')
        const body = { engine, operation: 'look', ...RUN }
        await desk.refuses('POST', '/api/history', { body }, 400)
      }
      for (const engine of ['Billing', 'a b', '-a', 'x'.repeat(65)]) {
        await desk.refuses('POST', '/api/dlq', { body: captureBody({ engine }) }, 400, '1 to 64')
        await desk.refuses('GET', '/api/dlq', { query: { engine } }, 400, 'engine_unknown')
      }
      await desk.refuses('GET', '/api/dlq', { query: { engine: 'a\0b' } }, 400)
    })
  },
  { settings: { engines: {} } },
)

describe.each(stores)('letters of an engine that is no longer defined on $name', (kind) => {
  let place: FreshStore
  beforeEach(async () => {
    place = await kind.fresh()
  })
  afterEach(() => place.dispose())

  it('can be found, read and resolved, but no new ones are taken', async () => {
    const definitions = { billing: { queue: 'invoices', operations: ['issue'] } }
    const defining = await startOffice(place.url, { engines: { context: 'managed-app', definitions } })
    const first = new Wire(defining.url)
    const body = captureBody({ engine: 'billing' })
    const { data } = await apiCall(first, 'POST', '/api/dlq', { body })
    const run = { engine: 'billing', operation: 'issue', ...RUN }
    expect((await apiCall(first, 'POST', '/api/history', { body: run })).status).toBe(201)
    await first.close()
    await defining.stop()

    const server = await startOffice(place.url, { engines: { context: 'managed-app' } })
    const wire = new Wire(server.url)
    try {
      for (const path of FILTERED) {
        const reply = await apiCall(wire, 'GET', path, { query: { engine: 'billing' } })
        expect(reply.status, path).toBe(200)
      }
      const issued = { query: { engine: 'billing', operation: 'issue' } }
      expect((await apiCall(wire, 'GET', '/api/history', issued)).status).toBe(200)
      // What the capture answered is a letter.
      const { rowKey } = data as Listed
      const patch = { body: { status: 'Resolved', resolutionNotes: 'done' } }
      expect((await apiCall(wire, 'PATCH', `/api/dlq/billing/${rowKey}`, patch)).status).toBe(200)
      const again = await apiCall(wire, 'POST', '/api/dlq', { body: captureBody({ engine: 'billing' }) })
      expect(again).toMatchObject({ status: 400, error: { code: 'engine_unknown' } })
    } finally {
      await wire.close()
      await server.stop()
    }
  })
})
