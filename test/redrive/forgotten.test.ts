/** A redrive that ended long ago is forgotten, and nothing that is heard of its letters afterwards is told of another. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import type { LetterSource } from '../../src/letters/source.ts'
import { type OfficeRuns, officeRuns } from '../../src/letters/work.ts'
import { EngineDirectory } from '../../src/queues/engines/engine-directory.ts'
import { Redrives } from '../../src/redrive/redrives.ts'
import { LetterStore } from '../world/letter-store.ts'
import { PLAIN } from '../world/redrive-office.ts'
import { reused } from '../world/reused-store.ts'
import { stores } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'

describe.each(stores)('a redrive that is forgotten on $name', (kind) => {
  const place = reused(kind)
  let store: LetterStore
  let redrives: Redrives
  let runs: OfficeRuns
  beforeEach(async () => {
    store = await LetterStore.open(place)
    await store.createQueue('orders')
    const source: LetterSource = store.queues.letterSource('http')
    runs = officeRuns(store.db, store.clock, silentLog)
    redrives = new Redrives({
      ...{
        db: store.db,
        clock: store.clock,
        log: silentLog,
        runs,
        sources: new Map([[source.name, source]]),
      },
      ...{ engines: new EngineDirectory({ context: 'publisher' }), retentionDays: 0 },
    })
    runs.start()
  })
  afterEach(async () => {
    await runs?.stop()
    await redrives?.stop()
    await store?.close()
  })

  const run = async () => {
    await store.capture({ originalQueue: 'orders' })
    const { id } = await redrives.plan({
      selection: { by: 'filter', filter: {} },
      ...{ action: 'retry', queue: null, recipe: null, terms: PLAIN, reason: null, actor: 'nell' },
    })
    await redrives.start(id, 'nell')
    await redrives.settle()
    return redrives.read(id)
  }

  it('leaves its letters to nobody', async () => {
    const first = await run()
    expect(first).toMatchObject({ state: 'done', counts: { sent: 1, unconfirmed: 1 } })
    store.clock.advance(601_000_000n)
    await expect.poll(() => redrives.read(first.id).catch(({ code }) => code)).toBe('redrive_unknown')

    const second = await run()
    expect(second.counts).toMatchObject({ planned: 1, sent: 1, unconfirmed: 1 })
    const { partition, items } = await store.lease('orders')
    const [older] = items
    await store.queues.complete({ queueName: 'orders', partition, ids: [older?.id ?? ''] })
    expect((await redrives.read(second.id)).counts).toMatchObject({ confirmed: 0, unconfirmed: 1 })
    expect(await violationsIn(store.db, { clock: store.clock })).toEqual([])
  })
})
