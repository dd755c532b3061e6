/** The clients of letters, redrives and history against a real server: every call, and the example of the guide. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RunningServer, startServer } from '../../test/world/server.ts'
import {
  bytesOf,
  type CaptureRequest,
  HistoryClient,
  LetterClient,
  type LetterItem,
  OfficeClientError,
  QueueClient,
  RedriveClient,
  textOf,
} from './index.ts'

const QUEUE = 'hmac'
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/

let server: RunningServer
let queues: QueueClient
let letters: LetterClient
let history: HistoryClient
let redrives: RedriveClient
let count = 0

beforeAll(async () => {
  server = await startServer({ store: 'sqlite::memory:', testApi: false })
  queues = new QueueClient({ url: server.url })
  letters = new LetterClient({ url: server.url })
  history = new HistoryClient({ url: server.url })
  redrives = new RedriveClient({ url: server.url })
  await queues.create({ queueName: QUEUE, leaseTimeout: '1m', expireTimeout: '1h', requestedPartitions: 1 })
})

afterAll(() => server.stop())

/** A letter that no other test knows of. */
function captured(extra: Partial<CaptureRequest> = {}): Promise<LetterItem> {
  const sourceId = `source-${++count}`
  return letters.capture({
    engine: 'hmac',
    originalQueue: QUEUE,
    originalMessage: `message ${count}`,
    errorClass: 'TimeoutError',
    errorMessage: `the vault did not answer within ${count} ms`,
    sourceId,
    ...extra,
  })
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

describe('a capture', () => {
  it('is a letter, and the same one for the same source id', async () => {
    const request = {
      engine: 'hmac',
      originalQueue: QUEUE,
      sourceId: 'twice',
      originalMessage: 'x',
      errorMessage: 'no',
    }
    const lastFailureAtUtc = new Date('2026-01-01T00:00:00.125Z')
    const first = await letters.capture({ ...request, lastFailureAtUtc, headers: { from: 'me' } })
    expect(first).toMatchObject({ engine: 'hmac', status: 'Pending', originalQueue: QUEUE, source: 'http' })
    expect(first.lastFailureAtUtc).toBe('2026-01-01T00:00:00.125000Z')
    expect((await letters.capture(request)).rowKey).toBe(first.rowKey)
    expect(await letters.get(first)).toMatchObject({ headers: { from: 'me' } })
  })

  it('of many is a letter each, and says which are known or refused', async () => {
    const request = { engine: 'hmac', originalMessage: 'x', errorMessage: 'no' }
    const [one, two] = ['many-1', 'many-2'].map((sourceId) => ({ ...request, sourceId }))
    if (one === undefined || two === undefined) throw new Error('there is no request')
    const { results, ...counts } = await letters.captureMany([one, two, { ...one, sourceId: '' }, one])
    expect(counts).toEqual({ created: 2, known: 1, refused: 1 })
    expect(results.map(({ outcome }) => outcome)).toEqual(['created', 'created', 'refused', 'known'])
    const [first] = results
    if (first?.outcome !== 'created') throw new Error('the first was not filed')
    expect(await letters.get(first.letter)).toMatchObject({ sourceId: 'many-1', status: 'Pending' })
  })

  it('keeps its bytes', async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
    const letter = await letters.get(await captured({ originalMessage: bytes }))
    expect(letter.originalMessageEncoding).toBe('base64')
    expect(bytesOf(letter.originalMessage, letter.originalMessageEncoding)).toEqual(bytes)
  })
})

describe('a list', () => {
  it('is walked page by page, newest failure first', async () => {
    for (let n = 0; n < 7; n++) await captured({ instanceId: 'walked' })
    const found = await all(letters.walk({ instanceId: 'walked', limit: 3 }))
    expect(found).toHaveLength(7)
    const times = found.map(({ lastFailureAtUtc }) => lastFailureAtUtc)
    expect(times).toEqual(times.toSorted().toReversed())
    expect(times[0]).toMatch(INSTANT)
  })

  it('ends with a page that has no token', async () => {
    await captured({ instanceId: 'alone' })
    const page = await letters.list({ instanceId: 'alone', status: 'Pending', fromDate: new Date(0) })
    expect(page).toMatchObject({ items: [{ instanceId: 'alone' }], continuationToken: null })
  })
})

describe('a letter', () => {
  it('goes back to its queue, as it is or edited, after a look at what would be sent', async () => {
    const [plain, edited] = [await captured(), await captured()]
    const preview = await letters.retry(edited, { payload: new Uint8Array([0, 255]), dryRun: true })
    expect(preview).toMatchObject({ queue: QUEUE, payloadEncoding: 'base64', edited: true })
    expect((await letters.get(edited)).status).toBe('Pending')

    expect(await letters.retry(plain)).toMatchObject({ queue: QUEUE })
    const { messageId } = await letters.retry(edited, { payload: new Uint8Array([0, 255]), notes: 'mended' })
    expect(await letters.get(edited)).toMatchObject({ status: 'Resolved', sentAs: messageId, sentTo: QUEUE })
    const { items } = await queues.lease({ queueName: QUEUE, clientId: 'c', batchSize: 10 })
    expect(items.map(({ payload }) => textOf(payload) ?? [...payload])).toContainEqual([0, 255])
    await queues.complete({ queueName: QUEUE, ids: items.map(({ id }) => id) })
    expect((await letters.get(plain)).confirmedAtUtc).toMatch(INSTANT)
  })

  it('is discarded, restored and expired, and its history tells', async () => {
    const letter = await captured()
    expect(await letters.discard(letter, 'seen')).toMatchObject({
      status: 'Resolved',
      resolutionNotes: 'seen',
    })
    expect(await letters.restore(letter)).toMatchObject({ status: 'Pending' })
    expect(await letters.expire(letter)).toMatchObject({ status: 'Expired' })
    const operations = (await letters.get(letter)).history.map(({ operation }) => operation)
    expect(operations.toSorted()).toEqual(['capture', 'discard', 'expire', 'restore'])
  })

  it('is sent once, however often the same call is made', async () => {
    const letter = await captured()
    const calls = Array.from({ length: 10 }, () =>
      letters.retry(letter, {}, { idempotencyKey: 'one-effect' }),
    )
    const ids = new Set((await Promise.all(calls)).map(({ messageId }) => messageId))
    expect(ids.size).toBe(1)
  })

  it('that is not pending any more is refused with the code of the error table', async () => {
    const letter = await captured()
    await letters.discard(letter, 'seen')
    const refused = await letters.retry(letter).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(OfficeClientError)
    expect(refused).toMatchObject({ code: 'letter_status_wrong', status: 409, retryable: false })
    expect(refused).toHaveProperty('correlationId', expect.stringMatching(/./))
  })

  it('that nobody knows is told so', async () => {
    const unknown = { engine: 'hmac', rowKey: 'a/b-20270101T000000000000Z' }
    await expect(letters.get(unknown)).rejects.toMatchObject({ code: 'letter_unknown', status: 404 })
  })
})

describe('many letters', () => {
  it('are expired by age, counted and grouped', async () => {
    const lastFailureAtUtc = '2020-01-01T00:00:00.000001Z'
    const old = { engine: 'tls', originalMessage: 'x', errorMessage: 'certificate gone', lastFailureAtUtc }
    for (const sourceId of ['a', 'b']) await letters.capture({ ...old, sourceId })
    expect(await letters.expireOlder({ olderThanDays: 30, engine: 'tls' })).toBe(2)

    const { items, totals } = await letters.counts({ engine: 'tls' })
    expect(items).toMatchObject([{ engine: 'tls', source: 'http', status: 'Expired', count: 2 }])
    expect(totals).toEqual({ Pending: 0, Resolved: 0, Expired: 2 })
    const byEngine = await letters.counts({ by: ['engine'], status: 'Expired' })
    expect(byEngine.items).toContainEqual({ engine: 'tls', count: 2 })

    const { outcomes, ...group } = await letters.signature(items[0]?.signature ?? '')
    expect(group).toMatchObject({ open: 0, total: 2, lastSeenAtUtc: lastFailureAtUtc, engines: ['tls'] })
    expect(outcomes).toEqual({ retried: 0, confirmed: 0, returned: 0, unconfirmed: 0 })
    expect(group.trend.reduce((sum, number) => sum + number)).toBe(2)
    expect(await letters.signatures({ engine: 'tls' })).toEqual({ items: [group], continuationToken: null })
  })
})

describe('a redrive', () => {
  it('is planned, started, watched until it is done, and counted by its server', async () => {
    const instanceId = 'driven'
    for (let n = 0; n < 3; n++) await captured({ instanceId })
    const filter = { instanceId, fromDate: new Date(0) }
    const plan = await redrives.plan({ filter, action: 'retry', reason: 'mended' })
    expect(plan).toMatchObject({ state: 'planned', counts: { planned: 3 }, isExpired: false })
    expect(plan.sample.map((letter) => letter.queue)).toEqual([QUEUE, QUEUE, QUEUE])
    await redrives.start(plan.id)
    await expect.poll(async () => (await redrives.read(plan.id)).state).toBe('done')
    expect((await redrives.list({ states: ['done', 'stopped'] })).items).toMatchObject([{ id: plan.id }])
    expect((await redrives.letters(plan.id, { limit: 2 })).items).toHaveLength(2)
    const found = await all(redrives.walkLetters(plan.id, { outcome: 'unconfirmed', limit: 2 }))
    expect(found.map(({ engine, destination }) => [engine, destination])).toEqual(
      Array(3).fill(['hmac', QUEUE]),
    )
    const { items } = await queues.lease({ queueName: QUEUE, clientId: 'c', batchSize: 100 })
    await queues.complete({ queueName: QUEUE, ids: items.map(({ id }) => id) })
    expect(await redrives.read(plan.id)).toMatchObject({ counts: { sent: 3, confirmed: 3 } })
    await expect(redrives.start(plan.id)).rejects.toMatchObject({ code: 'redrive_started', status: 409 })
    const metrics = await (await fetch(`${server.url}/metrics`)).text()
    expect(metrics).toContain('bartleby_redrive_letters_total{action="retry",outcome="sent"} 3\n')
    expect(metrics).toContain('bartleby_redrives_ended_total{state="done"} 1\n')
    expect(metrics).toContain('bartleby_redrives{state="running"} 0\n')
  })

  it('is paused, slowed down, resumed and cancelled', async () => {
    const letter = await captured({ instanceId: 'slow' })
    const { id } = await redrives.plan({
      ids: [letter],
      action: 'retry',
      rate: 0.001,
      canary: { letters: 1 },
    })
    expect(await redrives.start(id)).toMatchObject({ state: 'canary', rate: 0.001 })
    expect(await redrives.pause(id, 'lunch')).toMatchObject({ state: 'paused', note: 'lunch' })
    expect(await redrives.setRate(id, 0.002)).toMatchObject({ rate: 0.002 })
    expect(await redrives.resume(id)).toMatchObject({ state: 'canary', note: null })
    expect(await redrives.cancel(id)).toMatchObject({ state: 'cancelled', counts: { sent: 0, remaining: 1 } })
    await expect(redrives.pause(id)).rejects.toMatchObject({ code: 'redrive_state_wrong', status: 409 })
    await expect(redrives.read('nobody')).rejects.toMatchObject({ code: 'redrive_unknown', status: 404 })
  })
})

describe('the office in numbers', () => {
  it('tells how many letters match, what happened to them, and how all of it stands', async () => {
    const letter = await captured({ engine: 'spn', originalQueue: QUEUE, dequeueCount: 3 })
    expect(await letters.total({ engine: 'spn', status: 'Pending' })).toEqual({ total: 1, exact: true })
    expect(await letters.total({ engine: 'spn', minAttempts: 4 })).toEqual({ total: 0, exact: true })
    await letters.retry(letter)
    expect(await letters.list({ engine: 'spn', outcome: 'unconfirmed' })).toMatchObject({
      items: [{ rowKey: letter.rowKey }],
    })
    const { bucketSeconds, series, ...activity } = await letters.activity({ range: '1h', engine: 'spn' })
    expect([bucketSeconds, activity.range]).toEqual([3_600, '1h'])
    expect([series.arrived, series.retried].map((numbers) => numbers.reduce((a, b) => a + b))).toEqual([1, 1])
    expect((await letters.activity()).series.expired).toHaveLength(96)
    const overview = await letters.overview()
    expect(overview).toMatchObject({ arrivals: { usualPerHour: null }, returnedLastDay: 0 })
    expect(overview.unconfirmed).toBeGreaterThan(0)
    expect(overview.asOfUtc).toMatch(INSTANT)
    expect(overview.sources).toContainEqual({
      source: 'kafka',
      pending: 0,
      health: 'off',
      note: 'Kafka is not enabled',
    })
  })
})

describe('history', () => {
  it('takes a record, once per source id, and gives it back', async () => {
    const run = { engine: 'hmac', operation: 'rotate', status: 'Failed', durationMs: 12 } as const
    const report = { ...run, instanceId: 'tenant-7', input: { key: 1 }, error: 'no', sourceId: 'run-1' }
    const entry = await history.record(report)
    expect(await history.record(report)).toEqual(entry)
    expect(entry.createdAtUtc).toMatch(INSTANT)
    expect(await history.get(entry)).toMatchObject({ ...run, input: '{"key":1}', error: 'no', letter: null })
    expect(await history.list({ instanceId: 'tenant-7' })).toEqual({
      items: [entry],
      continuationToken: null,
    })
  })

  it('is walked page by page', async () => {
    const letter = await captured()
    await letters.discard(letter, 'seen')
    const { correlationId } = letter
    const found = await all(history.walk({ correlationId, limit: 1 }))
    expect(found.map(({ operation }) => operation)).toEqual(['discard', 'capture'])
  })
})

describe('the guide', () => {
  it('has an example that runs', async () => {
    const guide = await readFile(new URL('../../docs/guide.md', import.meta.url), 'utf8')
    const code = /## Letters\n.*?```ts\n(.*?)```/s.exec(guide)?.[1] ?? ''
    const folder = await mkdtemp(join(tmpdir(), 'bartleby-guide-'))
    const shown = vi.spyOn(console, 'log').mockImplementation(() => {})
    try {
      const file = join(folder, 'letters.ts')
      const client = pathToFileURL(join(import.meta.dirname, 'index.ts')).href
      await writeFile(
        file,
        code.replace("'bartleby/client'", `'${client}'`).replace('http://127.0.0.1:1853', server.url),
      )
      await import(file)
      expect(shown.mock.lastCall).toEqual([expect.any(String), 'went to', QUEUE, 'as', expect.any(String)])
    } finally {
      shown.mockRestore()
      await rm(folder, { recursive: true })
    }
  })
})
