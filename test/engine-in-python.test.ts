/** examples/engine.py, the engine of the guide that needs nothing but HTTP, as its reader would run it. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PATIENCE_MS } from './world/limits.ts'
import { type ServerHere, startServer } from './world/server.ts'

const program = fileURLToPath(new URL('../examples/engine.py', import.meta.url))
const QUEUE = 'hmac-rotation-queue'
const guide = readFileSync(new URL('../docs/guide.md', import.meta.url), 'utf8')
/** What the guide says that the server is to be told. */
const DEFINITION = /^```yaml\n(engines:\n {2}definitions:\n {4}hmac: [\s\S]*?)^```$/m.exec(guide)?.[1] ?? ''
const hasPython = spawnSync('python3', ['--version']).status === 0

it('is shown by the guide as it is', () => {
  expect(guide).toContain(`\`\`\`python\n${readFileSync(program, 'utf8')}\`\`\``)
})

describe.skipIf(!hasPython).each([
  ['whose queue the server knows', DEFINITION, 'hmac'],
  ['on a server that was told nothing', '', 'queues'],
])('an engine in Python %s', (_, settings, filedUnder) => {
  let folder: string
  let server: ServerHere
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bartleby-python-'))
    const config = join(folder, 'bartleby.yaml')
    await writeFile(config, settings)
    server = await startServer({ store: 'sqlite::memory:', config })
  })
  afterAll(async () => {
    await server?.stop()
    await rm(folder, { recursive: true })
  })

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
    expect(found.map(({ engine }) => engine)).toEqual([filedUnder])
    expect(found).toMatchObject([{ errorClass: 'KeyError', errorMessage: "'instanceId'", dequeueCount: 3 }])
    expect((await queues.stats(QUEUE)).partitions.map(({ total }) => total)).toEqual([0])
  })
})
