import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import type { LetterStatus } from '../letter.ts'

const SECOND = 1_000_000n
const QUEUE = 'hmac-rotation-queue'
const BY = { actor: 'tester', notes: 'for the test' }

describe.each(stores)('gauges of the office on $name', (kind) => {
  let store: LetterStore

  beforeAll(async () => {
    store = await LetterStore.open(kind)
    await store.createQueue(QUEUE)
  })
  afterAll(() => store?.close())

  const gauges = () => store.letters.numbers.officeGauges()
  const keys = async () => (await store.letters.list({ status: 'Pending' }, { limit: 10 })).items.toReversed()
  const change = async (place: number, status: LetterStatus) => {
    const { engine, rowKey } = (await keys())[place] ?? { engine: '', rowKey: '' }
    await store.letters.change({ engine, rowKey }, { ...BY, status })
  }

  it('of an empty office is still', async () => {
    expect(await gauges()).toEqual({
      oldestPendingAt: null,
      outcomes: { retried: 0, confirmed: 0, returned: 0, discarded: 0, expired: 0 },
    })
  })

  it('has the letter that is pending for the longest time, and what was ever done', async () => {
    const first = store.clock.now()
    for (let i = 0; i < 4; i++) {
      await store.letters.capture(store.report())
      store.clock.advance(SECOND)
    }
    expect((await gauges()).oldestPendingAt).toBe(first)
    await change(0, 'Resolved')
    expect((await gauges()).oldestPendingAt).toBe(first + SECOND)
    await change(0, 'Expired')
    const { engine = '', rowKey = '' } = (await keys())[0] ?? {}
    await store.letters.retry({ engine, rowKey }, { ...BY, edit: null })
    const ids = (await store.lease(QUEUE)).items.map(({ id }) => id)
    await store.queues.complete({ queueName: QUEUE, ids })
    expect(await gauges()).toEqual({
      oldestPendingAt: first + 3n * SECOND,
      outcomes: { retried: 1, confirmed: 1, returned: 0, discarded: 1, expired: 1 },
    })
  })
})
