/** Contract 1: the engines of both contexts, those of the configuration, and Bartleby's own. */
import { expect, it } from 'vitest'
import { captureBody, type Desk, offices, startOffice } from './bed.ts'

const PUBLISHER = {
  provisioning: ['webhook-queue', ['webhook-received', 'instance-registered', 'bootstrap-complete']],
  hmac: ['hmac-rotation-queue', ['rotate', 'notify']],
  tls: ['tls-rotation-queue', ['renew', 'distribute']],
  spn: ['spn-rotation-queue', ['rotate']],
  'update-publisher': [null, ['evaluate', 'notify']],
  alerts: ['monitor-alerts-queue', ['process']],
} as const

const MANAGED_APP = {
  update: ['update-notifications-queue', ['process', 'component-update']],
  health: ['health-notifications-queue', ['check', 'aggregate']],
  alerts: ['monitor-alerts-queue', ['process']],
} as const

const OWN = ['queues', 'outbox', 'webhooks', 'kafka', 'azure', 'http', 'office']

type Presets = Record<string, readonly [queue: string | null, operations: readonly string[]]>

/** Each engine of `presets` is there with its queue and operations. */
async function expectEngines(desk: Desk, presets: Presets): Promise<void> {
  for (const [engine, [queue, operations]] of Object.entries(presets)) {
    const letter = await desk.capture({ engine })
    expect(letter.originalQueue ?? null).toBe(queue)
    expect((await desk.list({ engine })).items.length).toBeGreaterThan(0)
    for (const operation of operations) {
      const body = { engine, operation, status: 'Succeeded', durationMs: 0 }
      await desk.ok('POST', '/api/history', { body }, 201)
      expect((await desk.history({ engine, operation })).items).toHaveLength(1)
    }
    const unknown = { engine, operation: 'no-such', status: 'Succeeded', durationMs: 0 }
    await desk.refuses('POST', '/api/history', { body: unknown }, 400, 'no-such', ...operations)
  }
}

/** An engine that is not there is refused everywhere, with the list of those that are. */
async function expectNoEngine(desk: Desk, engine: string, known: readonly string[]): Promise<void> {
  await desk.refuses('GET', '/api/dlq', { query: { engine } }, 400, engine, ...known)
  await desk.refuses('GET', '/api/history', { query: { engine } }, 400, engine, ...known)
  await desk.refuses('GET', `/api/dlq/${engine}/x`, {}, 400, engine, ...known)
  await desk.refuses('GET', `/api/history/${engine}/x`, {}, 400, engine, ...known)
  await desk.refuses('POST', `/api/dlq/${engine}/x/retry`, {}, 400, engine, ...known)
  await desk.refuses('PATCH', `/api/dlq/${engine}/x`, { body: { status: 'Pending' } }, 400, engine, ...known)
  await desk.refuses('POST', '/api/dlq', { body: captureBody({ engine }) }, 400, engine, ...known)
  await desk.refuses('POST', '/api/dlq/expire', { body: { olderThanDays: 1, engine } }, 400, engine, ...known)
  const body = { engine, operation: 'rotate', status: 'Succeeded', durationMs: 0 }
  await desk.refuses('POST', '/api/history', { body }, 400, engine, ...known)
}

offices(
  'the context publisher',
  (desk) => {
    it('has its engines, queues and operations', () => expectEngines(desk, PUBLISHER))

    it('has none of the other context', async () => {
      await expectNoEngine(desk, 'health', [...Object.keys(PUBLISHER), ...OWN])
      await expectNoEngine(desk, 'update', [...Object.keys(PUBLISHER), ...OWN])
    })
  },
  { settings: { engines: { context: 'publisher' } } },
)

offices(
  'the context managed-app',
  (desk) => {
    it('has its engines, queues and operations', () => expectEngines(desk, MANAGED_APP))

    it('has none of the other context', () =>
      expectNoEngine(desk, 'hmac', [...Object.keys(MANAGED_APP), ...OWN]))
  },
  { settings: { engines: { context: 'managed-app' } } },
)

const LONGEST = `a${'-0'.repeat(31)}b`

offices(
  'engines of the configuration',
  (desk) => {
    it('are added to the presets', async () => {
      await expectEngines(desk, {
        '9-lives': ['cat-queue', ['meow']],
        [LONGEST]: [null, ['wait']],
        tls: PUBLISHER.tls,
      })
    })

    it('take the place of presets of their name', async () => {
      await expectEngines(desk, { hmac: ['own-queue', ['spin']] })
      const body = { engine: 'hmac', operation: 'rotate', status: 'Succeeded', durationMs: 0 }
      await desk.refuses('POST', '/api/history', { body }, 400, 'rotate', 'spin')
    })
  },
  {
    settings: {
      engines: {
        context: 'publisher',
        definitions: {
          '9-lives': { queue: 'cat-queue', operations: ['meow'] },
          [LONGEST]: { queue: null, operations: ['wait'] },
          hmac: { queue: 'own-queue', operations: ['spin'] },
        },
      },
    },
  },
)

it.each(['Hmac', '-a', 'a_b', 'a b', '', 'x'.repeat(65), 'queues', 'office'])(
  'an engine cannot be called %j',
  async (name) => {
    const settings = { engines: { definitions: { [name]: { operations: ['a'] } } } }
    await expect(startOffice('sqlite::memory:', settings)).rejects.toThrow(/definitions/)
  },
)

it('a context is one of two', async () => {
  await expect(startOffice('sqlite::memory:', { engines: { context: 'other' } })).rejects.toThrow(
    /publisher.*managed-app/s,
  )
})
