/** A worker in a plain script, as an application would write it: nothing else holds the process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PATIENCE_MS } from '../../../test/world/limits.ts'
import { type FreshStore, type StoreKind, stores } from '../../../test/world/stores.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** Prints what it handles. The timer does not hold the process: it rings only when something else does. */
const worker = (afterStart: string) => `
  import { Office } from 'bartleby'
  const office = await Office.open({ store: process.argv[2], engines: { definitions: { orders: { queue: 'orders', operations: ['ship'] } } } })
  const engine = office.engine({
    name: 'orders', operation: 'ship',
    handler: async (message) => {
      console.log('shipped ' + message.id)
      setImmediate(() => engine.stop().then(() => office.close()))
    },
  })
  await engine.start()
  ${afterStart}`

describe.each(stores)('the process of an engine on $name', (kind: StoreKind) => {
  let store: FreshStore
  let folder: string

  beforeEach(async () => {
    store = await kind.fresh()
    // Inside the repository, so that `import … from 'bartleby'` means this package; the condition means its sources.
    mkdirSync(join(root, '.cache'), { recursive: true })
    folder = mkdtempSync(join(root, '.cache/engine-'))
  })

  afterEach(async () => {
    rmSync(folder, { recursive: true, force: true })
    await store.dispose()
  })

  /** Runs the script to its own end. */
  async function run(script: string): Promise<{ code: unknown; out: string; err: string }> {
    writeFileSync(join(folder, 'worker.ts'), script)
    const child = spawn(process.execPath, ['--conditions=bartleby-source', 'worker.ts', store.url], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: PATIENCE_MS,
    })
    const [[code], out, err] = await Promise.all([
      once(child, 'exit'),
      text(child.stdout),
      text(child.stderr),
    ])
    return { code, out, err }
  }

  it('lives until the engine is stopped', async () => {
    const later = `setTimeout(() => office.queues.produce({ queueName: 'orders', items: [{ payload: '{"id":7}' }] }), 300).unref()`
    expect(await run(worker(later))).toEqual({ code: 0, out: 'shipped 7\n', err: '' })
  })

  it('is not held by an engine that could not start', async () => {
    const closed = worker('')
      .replace('const engine', 'await office.drain()\n  const engine')
      .replace(
        'await engine.start()',
        'await engine.start().catch((error) => console.log(error.code))\n  await office.close()',
      )
    expect(await run(closed)).toEqual({ code: 0, out: 'service_stopping\n', err: '' })
  })
})
