/** examples/azure-python, an engine that knows nothing of the office, and the office that is pointed at its account. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Office } from '../../src/office.ts'
import { ACCOUNT, describeAzurite } from '../world/azurite.ts'
import { PATIENCE_MS, sizeOf } from '../world/limits.ts'

const example = fileURLToPath(new URL('../../examples/azure-python', import.meta.url))
const home = fileURLToPath(new URL('../../.cache/azure-python', import.meta.url))
const python = join(home, 'bin/python')
const LETTERS = 12

/** Why the example cannot be run, or null. Its libraries are installed once, into a place of their own. */
async function prepare(): Promise<string | null> {
  const imports = ['-c', 'import azure.data.tables, azure.storage.queue']
  if ((await stat(python).catch(() => null)) !== null && spawnSync(python, imports).status === 0) return null
  if (spawnSync('python3', ['-m', 'venv', home], { timeout: PATIENCE_MS }).status !== 0)
    return 'there is no Python with venv'
  const pip = ['-m', 'pip', 'install', '--quiet', '-r', join(example, 'requirements.txt')]
  const { status } = spawnSync(python, pip, { timeout: PATIENCE_MS })
  return status === 0 && spawnSync(python, imports).status === 0
    ? null
    : 'pip could not install its libraries'
}

const why = await prepare()

describeAzurite('the engine in Python', (azurite) => {
  if (why !== null && process.env.CI === 'true')
    it('needs its libraries', () => {
      throw new Error(why)
    })

  describe.skipIf(why !== null)(`of examples/azure-python${why === null ? '' : ` (${why})`}`, () => {
    let folder: string
    let office: Office
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'bartleby-azure-python-'))
      const connectionStringFile = join(folder, 'connection')
      await writeFile(connectionStringFile, azurite().connectionString)
      office = await Office.open({
        store: 'sqlite::memory:',
        engines: {
          context: 'publisher',
          tables: { storageAccountName: ACCOUNT, connectionStringFile, pollSeconds: 1 },
        },
      })
    })
    afterEach(async () => {
      await office.close()
      await rm(folder, { recursive: true })
    })

    async function runEngine(isBroken: boolean): Promise<void> {
      const env = {
        ...process.env,
        AZURE_STORAGE_CONNECTION_STRING: azurite().connectionString,
        ENGINE_BROKEN: isBroken ? '1' : '0',
      }
      const engine = spawn(python, [join(example, 'engine.py'), '--once'], { env, timeout: PATIENCE_MS })
      const [complaints, [code]] = await Promise.all([text(engine.stderr), once(engine, 'close')])
      expect({ code, complaints }).toEqual({ code: 0, complaints: '' })
    }

    it('has its failures in the office within seconds, sent back with a canary, done, and confirmed', async () => {
      await runEngine(false)
      const queue = azurite().queues.getQueueClient('hmac-rotation-queue')
      for (let i = 0; i < LETTERS; i++)
        await queue.sendMessage(JSON.stringify({ instanceId: `tenant-${i}`, correlationId: `rotation-${i}` }))
      await runEngine(true)
      const began = performance.now()
      const pending = () => office.letters.list({ engine: 'hmac', status: 'Pending' }, { limit: 100 })
      await vi.waitFor(async () => expect((await pending()).items).toHaveLength(LETTERS), PATIENCE_MS)
      expect(performance.now() - began).toBeLessThan(sizeOf(PATIENCE_MS, 5_000))
      const [letter] = (await pending()).items
      expect(letter).toMatchObject({ source: 'azure', dequeueCount: 3, originalQueue: 'hmac-rotation-queue' })
      expect(letter?.errorMessage).toMatch(/^key vault of tenant-\d+ does not answer$/)

      const { id } = await office.redrives.plan({
        selection: { by: 'filter', filter: { engine: 'hmac', status: 'Pending' } },
        ...{ action: 'retry', queue: null, recipe: null, reason: 'the key vault is back', actor: 'nell' },
        terms: {
          rate: null,
          canary: { letters: 2, waitSeconds: 60, confirmPercent: 100 },
          stopRule: null,
          order: 'key',
        },
      })
      await office.redrives.start(id, 'nell')
      await vi.waitFor(
        async () => {
          await runEngine(false)
          expect(await office.redrives.read(id)).toMatchObject({
            state: 'done',
            counts: { sent: LETTERS, confirmed: LETTERS },
          })
        },
        { timeout: PATIENCE_MS, interval: 500 },
      )
      const { items } = await office.letters.list({ engine: 'hmac' }, { limit: 100 })
      expect(new Set(items.map(({ status, notes }) => `${status} ${notes?.includes('redrive')}`))).toEqual(
        new Set(['Resolved true']),
      )
      expect(items.every(({ confirmedAt }) => confirmedAt !== null)).toBe(true)
      const states: unknown[] = []
      await vi.waitFor(async () => expect((await office.azure?.state())?.unwritten).toBe(0), PATIENCE_MS)
      for await (const { Status, ResolutionNotes } of azurite()
        .table('engineDlq')
        .listEntities<{ Status: string; ResolutionNotes: string }>())
        states.push(`${Status} ${ResolutionNotes.slice(0, 7)}`)
      expect(states).toEqual(Array(LETTERS).fill('Resolved Retried'))
      const runs = (await office.history.list({ engine: 'hmac', operation: 'rotate' }, { limit: 100 })).items
      expect(runs.filter(({ status }) => status === 'Failed').length).toBe(3 * LETTERS)
      expect(runs.filter(({ status }) => status === 'Succeeded').length).toBe(LETTERS)
    })
  })
})
