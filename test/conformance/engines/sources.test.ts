/** What operators see of a running server: its queues, its engines, its settings, and whether its store keeps its promises. */
import { expect, it } from 'vitest'
import { captureBody, offices } from './bed.ts'

interface Queue {
  readonly name: string
  readonly ready: number
  readonly letters: number
}

interface Engine {
  readonly name: string
  readonly queue: string | null
  readonly pending: number
  readonly operations: readonly {
    readonly operation: string
    readonly runs: number
    readonly p50Ms: number | null
  }[]
}

interface Standing {
  readonly state: string
  readonly checks: readonly { readonly id: string; readonly holds: boolean }[]
}

interface Operation {
  readonly operationId: string
  readonly description: string
  readonly responses: Readonly<Record<string, unknown>>
}

offices('a server for operators', (desk) => {
  it('shows queues with their items and the letters that came from them, page by page', async () => {
    const first = await desk.queues.queue()
    const names = [first, await desk.queues.queue(), await desk.queues.queue()]
    await desk.queues.produce(first, 'one', 'two')
    await desk.capture({ originalQueue: first })
    const seen: Queue[] = []
    let continuationToken: string | null = null
    do {
      const query: Record<string, string> = {
        limit: '2',
        ...(continuationToken === null ? {} : { continuationToken }),
      }
      const page: { items: Queue[]; continuationToken: string | null } = await desk.ok('GET', '/api/queues', {
        query,
      })
      expect(page.items.length).toBeLessThanOrEqual(2)
      seen.push(...page.items)
      continuationToken = page.continuationToken
    } while (continuationToken !== null)
    expect(seen.map(({ name }) => name)).toEqual(expect.arrayContaining(names))
    expect(new Set(seen.map(({ name }) => name)).size).toBe(seen.length)
    expect(seen.find(({ name }) => name === first)).toMatchObject({ ready: 2, letters: 1 })
  })

  it('shows engines with their runs and pending letters, which add up to the counts', async () => {
    const run = { engine: 'ledger', operation: 'post', status: 'Succeeded', durationMs: 40 }
    for (const durationMs of [10, 40, 90])
      await desk.ok('POST', '/api/history', { body: { ...run, durationMs } }, 201)
    await desk.ok('POST', '/api/dlq', { body: captureBody({ engine: 'ledger' }) }, 201)
    const { items } = await desk.ok<{ items: readonly Engine[] }>('GET', '/api/engines')
    const ledger = items.find(({ name }) => name === 'ledger')
    expect(ledger).toMatchObject({ queue: 'ledger-queue', pending: 1 })
    expect(ledger?.operations.slice(0, 2)).toMatchObject([
      { operation: 'post', runs: 3, p50Ms: 40 },
      { operation: 'close', runs: 0, p50Ms: null },
    ])
    const { totals } = await desk.ok<{ totals: { Pending: number } }>('GET', '/api/counts')
    expect(items.reduce((sum, { pending }) => sum + pending, 0)).toBe(totals.Pending)
  })

  it('tells what it runs with', async () => {
    const settings = await desk.ok<Record<string, unknown>>('GET', '/api/settings')
    expect(settings).toMatchObject({
      store: { kind: desk.store.name },
      retentionDays: 90,
      environment: { name: 'local', colour: 'gray' },
      tokens: [],
      tokensConfigured: false,
    })
    expect(JSON.stringify(settings)).not.toContain('postgres://')
  })

  it('checks its store while it works, and finds every promise kept', async () => {
    const started = await desk.ok<Standing>('POST', '/api/verify')
    expect(started.state).toBe('running')
    await desk.capture()
    await expect.poll(async () => (await desk.ok<Standing>('GET', '/api/verify')).state).toBe('done')
    const { checks } = await desk.ok<Standing>('GET', '/api/verify')
    expect(checks.length).toBeGreaterThan(10)
    expect(checks.filter(({ holds }) => !holds)).toEqual([])
  })

  it('describes these calls in its document', async () => {
    const { bytes } = await desk.wire.raw('/openapi.json', { method: 'GET' })
    // The part of the document that is looked at here.
    const { paths } = JSON.parse(Buffer.from(bytes).toString()) as {
      readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
    }
    for (const [path, method, operationId, role] of [
      ['/api/queues', 'get', 'queues.overview', 'viewer'],
      ['/api/engines', 'get', 'engines.list', 'viewer'],
      ['/api/settings', 'get', 'settings.get', 'viewer'],
      ['/api/verify', 'get', 'verify.get', 'viewer'],
      ['/api/verify', 'post', 'verify.start', 'admin'],
    ] as const) {
      const operation = paths[path]?.[method]
      expect(operation).toMatchObject({
        operationId,
        description: expect.stringContaining(`the role ${role}`),
      })
      expect(Object.keys(operation?.responses ?? {})).toEqual(expect.arrayContaining(['200', '401', '403']))
    }
  })
})
