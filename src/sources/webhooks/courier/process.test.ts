/** Webhooks in a plain script, as an application would write it: nothing else holds the process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PATIENCE_MS } from '../../../../test/world/limits.ts'
import { doorTo } from '../../../../test/world/proxy.ts'
import { Receiver } from '../../../../test/world/receiver.ts'
import { type FreshStore, freshPostgres, freshSqlite } from '../../../../test/world/stores.ts'
import { jobRows } from '../../../../test/world/webhooks/rows.ts'
import { openDatabase } from '../../../store/open.ts'
import { JOB } from '../webhook.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))

/** Sends one message to the receiver, and does nothing more. */
const SCRIPT = `
  import { Office } from 'bartleby'
  const [, , store, callbackUrl] = process.argv
  const entry = { id: 'one', token: 'secret' }
  const seed = { channels: [entry], producers: [entry], consumers: [{ ...entry, channel: 'one', callbackUrl }] }
  const office = await Office.open({ store, webhooks: { seed, delivery: { refusedAddresses: [] } } })
  const { broadcasts } = office.webhooks
  const sender = await broadcasts.authorise({ channelId: 'one', channelToken: 'secret', producerId: 'one', producerToken: 'secret' })
  const content = { contentType: 'text/plain', priority: 0, headers: [], payload: Buffer.from('x') }
  await broadcasts.accept(sender, { messageId: null, content, scheduledFor: null })`

describe('the process of a courier', () => {
  let folder: string

  beforeEach(() => {
    // Inside the repository, so that `import … from 'bartleby'` means this package; the condition means its sources.
    mkdirSync(join(root, '.cache'), { recursive: true })
    folder = mkdtempSync(join(root, '.cache/courier-'))
    writeFileSync(join(folder, 'script.ts'), SCRIPT)
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const begin = (store: string, callbackUrl: string): ChildProcess =>
    spawn(process.execPath, ['--conditions=bartleby-source', 'script.ts', store, callbackUrl], {
      ...{ cwd: folder, stdio: 'ignore', timeout: PATIENCE_MS },
    })

  const statesIn = async ({ url }: FreshStore) => {
    const db = openDatabase(url, { poolSize: 1 })
    const jobs = await db.session('test', jobRows)
    await db.close()
    return jobs.map(({ state }) => state)
  }

  it('ends by itself once nothing is under way', async () => {
    const store = await freshSqlite()
    const receiver = await Receiver.start((response) => void setTimeout(() => response.end(), 300))
    const [code] = await once(begin(store.url, receiver.hook()), 'exit')
    expect(code).toBe(0)
    expect(await statesIn(store)).toEqual([JOB.delivered])
    await receiver.close()
    await store.dispose()
  })

  it('lives as long as a result waits for its store', async () => {
    const store = await freshPostgres()
    const door = await doorTo(store.url)
    const answers: ServerResponse[] = []
    const receiver = await Receiver.start((response) => answers.push(response))
    const child = begin(door.url, receiver.hook())
    await receiver.gets(1)
    door.shut()
    answers[0]?.end()
    await pause(3_000)
    door.open()
    await expect.poll(() => statesIn(store), { timeout: PATIENCE_MS }).toEqual([JOB.delivered])
    child.kill()
    await receiver.close()
    await door.close()
    await store.dispose()
  })
})
