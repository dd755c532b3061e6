/**
 * One client, one call after the other, on a queue and its dead queue: every answer and everything that lists,
 * stats, depths and peeks show is what a simple queue in memory predicts.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { Office } from '../../src/office.ts'
import { checkPrograms } from '../world/model.ts'
import { type FreshStore, stores } from '../world/stores.ts'
import { Desk } from './desk.ts'
import { step } from './steps.ts'

describe.each(stores)('a queue on $name', (store) => {
  let place: FreshStore
  let office: Office
  let performed = 0

  beforeAll(async () => {
    place = await store.fresh()
    const clock = new TestClock()
    clock.freeze(instant(1_800_000_000_000_000n))
    office = await Office.open({ store: place.url, clock })
  })

  afterAll(async () => {
    await office?.close()
    await place?.dispose()
  })

  for (const partitions of [1, 3]) {
    it(`of ${partitions} partitions answers as a queue in memory would`, async () => {
      const programs = fc.array(step, { minLength: 5, maxLength: 30, size: 'max' })
      await checkPrograms(programs, store.name === 'sqlite' ? 25 : 5, async (steps) => {
        const desk = await Desk.open(office, `queue-${performed++}`, partitions)
        for (const each of steps) await desk.take(each)
        await desk.close()
      })
    })
  }
})
