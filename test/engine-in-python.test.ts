/** examples/engine.py, the engine of the guide that needs nothing but HTTP, as its reader would run it. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PATIENCE_MS } from './harness/limits.ts'
import { type ServerHere, startServer } from './harness/server.ts'

const program = fileURLToPath(new URL('../examples/engine.py', import.meta.url))
const QUEUE = 'hmac-rotation-queue'
const hasPython = spawnSync('python3', ['--version']).status === 0

it('is shown by the guide as it is', () => {
  const guide = readFileSync(new URL('../docs/guide.md', import.meta.url), 'utf8')
  expect(guide).toContain(`\`\`\`python\n${readFileSync(program, 'utf8')}\`\`\``)
})

describe.skipIf(!hasPython)('an engine in Python', () => {
  let server: ServerHere
  beforeAll(async () => {
    server = await startServer({ store: 'sqlite::memory:' })
  })
  afterAll(() => server.stop())

  async function runEngine(): Promise<void> {
    const env = { ...process.env, BARTLEBY_URL: server.url, ENGINE_DELAY_SECONDS: '0' }
    const engine = spawn('python3', [program, '--once'], { env, timeout: PATIENCE_MS })
    const [complaints, [code]] = await Promise.all([text(engine.stderr), once(engine, 'close')])
    expect({ code, complaints }).toEqual({ code: 0, complaints: '' })
  }

  it('does its work, records every run, and makes a letter of what it cannot do', async () => {
    const { queues, letters, history } = server.office
    await runEngine()
    await queues.produce({
      queueName: QUEUE,
      items: [{ payload: '{"instanceId":"tenant-7"}' }, { payload: '{}' }],
    })
    await runEngine()
    const runs = (await history.list({ engine: 'hmac', operation: 'rotate' })).items
    expect(runs.map(({ status }) => status).toSorted()).toEqual(['Failed', 'Failed', 'Failed', 'Succeeded'])
    const found = (await letters.list({ originalQueue: QUEUE })).items
    expect(found).toMatchObject([{ errorClass: 'KeyError', errorMessage: "'instanceId'", dequeueCount: 3 }])
    expect((await queues.stats(QUEUE)).partitions.map(({ total }) => total)).toEqual([0])
  })
})
