import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LetterStore } from '../../test/world/letter-store.ts'
import { stores } from '../../test/world/stores.ts'
import { bury, PLAIN_RECORD } from './bury.ts'
import { takingGiven } from './capture.ts'
import { readLetterById } from './lists/detail.ts'
import { inOffice } from './work.ts'

describe.each(stores)('deaths on $name', (kind) => {
  let store: LetterStore
  beforeAll(async () => {
    store = await LetterStore.open(kind)
  })
  afterAll(() => store?.close())

  it('of no queue and of one that is called null are told apart', async () => {
    const queues = [null, 'null', 'other']
    const deaths = queues.map((queue, i) => ({
      cause: {
        source: 'http' as const,
        reason: 'failed' as const,
        ...{ engine: 'http', queue, errorClass: 'E', errorMessage: 'no' },
        ...{ errorStack: null, failedBy: null, record: PLAIN_RECORD },
      },
      ...{ caseId: null, sourceId: `dead-${i}`, diedAs: null, attempts: 1, position: null },
      correlationId: `correlation-${i}`,
      item: {
        ...{ itemCreatedAt: null, dequeueCount: 1, partition: null, encoding: null, kind: null },
        ...{ reference: null, headers: null, payload: null },
      },
    }))
    const found = await inOffice(store.db, store.clock, 'test', async (work) => {
      const { letters } = await bury(work, store.registers, takingGiven(), deaths)
      const all = []
      for (const id of letters.values()) all.push((await readLetterById(work.tx, id))?.originalQueue)
      return all
    })
    expect(found).toEqual(queues)
  })
})
