/**
 * What the files about the office API stand on: one server per file and store, with the engines of the publisher and
 * some of the tests' own, the clock frozen, and a client that checks the envelope of every reply.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { loadConfig } from '../../../src/config/index.ts'
import { serve } from '../../../src/http/serve.ts'
import type { RunningServer } from '../../world/server.ts'
import { type StoreKind, stores } from '../../world/stores.ts'
import { systemNow, TestClock } from '../../world/time.ts'
import { Wire } from '../../world/wire.ts'
import type { Ground } from '../queues/bed.ts'
import { Desk } from './desk.ts'

export * from '../../world/office-api.ts'
export { base64, idsOf, only, type StoredItem, unique, until } from '../queues/bed.ts'
export { captureBody, Desk } from './desk.ts'

export interface OfficeOptions {
  /** What stands in the configuration file beside the engines of the tests. */
  readonly settings?: Record<string, unknown>
  /** Left out: the clock stands still at the present until a test moves it. */
  readonly liveClock?: boolean
}

/** Engines that only tests have: one with a queue, one without, one whose letters nobody else touches. */
export const ENGINES = {
  context: 'publisher',
  definitions: {
    ledger: { queue: 'ledger-queue', operations: ['post', 'close'] },
    mute: { operations: ['hum'] },
    aged: { queue: 'aged-queue', operations: ['ripen'] },
  },
}

interface Running extends Ground {
  stop(): Promise<void>
}

/** A server in this process with these settings in its configuration file. */
export async function startOffice(store: string, settings: Record<string, unknown>): Promise<RunningServer> {
  const folder = await mkdtemp(join(tmpdir(), 'bartleby-config-'))
  try {
    const file = join(folder, 'bartleby.json')
    await writeFile(file, JSON.stringify(settings))
    const env = { BARTLEBY_TEST_API: '1', BARTLEBY_LOG_LEVEL: 'silent' }
    return await serve(loadConfig({ file, env, flags: { host: '127.0.0.1', port: 0, store } }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function start(store: StoreKind, options: OfficeOptions): Promise<Running> {
  const place = await store.fresh()
  const server = await startOffice(place.url, { engines: ENGINES, ...options.settings })
  const wire = new Wire(server.url)
  const clock = new TestClock(() => wire)
  if (!options.liveClock) await clock.freeze(systemNow())
  return {
    wire,
    place,
    clock,
    stop: async () => {
      await wire.close()
      await server.stop()
      await place.dispose()
    },
  }
}

const running = new Map<string, Promise<Running>>()

async function stopAll(): Promise<void> {
  const started = [...running.values()]
  running.clear()
  for (const each of started) await (await each).stop()
}

/** The same promises on every store. Calls of one file share a server when their options agree. */
export function offices(title: string, body: (desk: Desk) => void, options: OfficeOptions = {}): void {
  afterAll(stopAll)

  describe.each(stores)(`${title} on $name`, (store) => {
    let mine: Running | undefined

    beforeAll(async () => {
      const key = JSON.stringify([store.name, options])
      const server = running.get(key) ?? start(store, options)
      running.set(key, server)
      mine = await server
    })

    body(new Desk(store, () => mine ?? expect.fail('the server has not started')))
  })
}
