/**
 * Which files of `src/` a queue item passes through, by V8's own count of calls: in all its life over HTTP, and in its death
 * alone. Both are lived several times, and only what ran every time counts, so that the rounds of an idle office do not.
 * Prints the two lists as JSON. `docs/follow-a-letter.md` tells them, and a test compares it with what this prints.
 */
import { Session } from 'node:inspector/promises'
import { loadConfig } from '../src/config/index.ts'
import { serve } from '../src/http/serve.ts'
import { Office } from '../src/office.ts'

const ROOT = new URL('../', import.meta.url).href
const TIMES = 4
const STORE = 'sqlite::memory:'

/** Tells the counter to begin: what ran before is not a part of the journey. */
type Begin = () => Promise<void>

const counter = new Session()
counter.connect()
await counter.post('Profiler.enable')
await counter.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
console.log(JSON.stringify({ life: await filesOfLife(), death: await filesOfDeath() }))

/** From produce to confirmed, as clients see it: it dies, is found, sent back and completed. */
async function filesOfLife(): Promise<readonly string[]> {
  const flags = { host: '127.0.0.1', port: 0, store: STORE }
  const server = await serve(loadConfig({ env: { BARTLEBY_LOG_LEVEL: 'silent' }, flags }))
  const call = async (path: string, body?: object) => {
    const headers = { 'content-type': 'application/json' }
    const request = body === undefined ? {} : { method: 'POST', headers, body: JSON.stringify(body) }
    const reply = await fetch(new URL(path, server.url), request)
    const text = await reply.text()
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${text}`)
    return JSON.parse(text)
  }
  const lease = async (): Promise<string> => {
    const asked = { queue_name: 'orders', request_timeout: '5s', client_id: 'worker', batch_size: 1 }
    return (await call('/v1/queue.lease', asked)).items[0].id
  }
  await makeQueues(server.office)
  const files = await filesEveryTime(async (begin) => {
    await begin()
    const items = [{ utf8: '{}' }]
    await call('/v1/queue.produce', { queue_name: 'orders', request_timeout: '5s', items })
    await call('/v1/queue.retry', { queue_name: 'orders', items: [{ id: await lease(), dead: true }] })
    const [letter] = (await call('/api/dlq?status=Pending')).data.items
    await call(`/api/dlq/queues/${encodeURIComponent(letter.rowKey)}/retry`, {})
    await call('/v1/queue.complete', { queue_name: 'orders', request_timeout: '5s', ids: [await lease()] })
  })
  await server.stop()
  return files
}

/** Between the call of the retry that an item dies of and its answer, in an office without a server. */
async function filesOfDeath(): Promise<readonly string[]> {
  const office = await Office.open({ store: STORE })
  const { queues } = office
  await makeQueues(office)
  const files = await filesEveryTime(async (begin) => {
    await queues.produce({ queueName: 'orders', items: [{ payload: '{}' }] })
    const { items } = await queues.lease({ queueName: 'orders', clientId: 'worker', batchSize: 1 })
    await begin()
    await queues.retry({ queueName: 'orders', items: items.map(({ id }) => ({ id, dead: true })) })
  })
  await office.close()
  return files
}

async function makeQueues({ queues }: Office): Promise<void> {
  const settings = { leaseTimeout: '1m', expireTimeout: '1h', requestedPartitions: 1 }
  await queues.create({ ...settings, queueName: 'orders-dead' })
  await queues.create({ ...settings, queueName: 'orders', deadQueue: 'orders-dead' })
}

async function filesEveryTime(journey: (begin: Begin) => Promise<void>): Promise<readonly string[]> {
  let files: readonly string[] | undefined
  for (let time = 0; time < TIMES; time++) {
    await journey(async () => void (await filesRun()))
    const ran = await filesRun()
    files = files?.filter((file) => ran.has(file)) ?? [...ran].sort()
  }
  return files ?? []
}

/** The files of which a function was called since this was last asked. */
async function filesRun(): Promise<ReadonlySet<string>> {
  const { result } = await counter.post('Profiler.takePreciseCoverage')
  const ran = result.filter(
    ({ url, functions }) =>
      url.startsWith(`${ROOT}src/`) &&
      functions.some(({ functionName, ranges: [whole] }) => functionName !== '' && (whole?.count ?? 0) > 0),
  )
  return new Set(ran.map(({ url }) => url.slice(`${ROOT}src/`.length)))
}
