import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cloneLetter, reopen } from '../../../test/world/letter-acts.ts'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import type { LetterSummary } from '../letter.ts'
import type { LetterFilter } from './filter.ts'

const SECOND = 1_000_000n
const RETRY = { edit: null, notes: null, actor: 'nell' }

describe.each(stores)('letters by attempts and outcome on $name', (kind) => {
  let store: LetterStore
  /** Tried once, twice, … five times; all of one queue. */
  let letters: LetterSummary[]
  const queue = 'orders'

  beforeAll(async () => {
    store = await LetterStore.open(kind)
    await store.createQueue(queue)
    letters = []
    for (let tries = 1; tries <= 5; tries++) {
      store.clock.advance(SECOND)
      const report = store.report({
        originalQueue: queue,
        dequeueCount: tries,
        errorMessage: `error of ${queue}`,
      })
      letters.push((await store.letters.capture(report)).letter)
    }
    // The first is confirmed; of the second and third nothing is heard; the fourth is discarded.
    const [first, second, third, fourth] = letters as [
      LetterSummary,
      LetterSummary,
      LetterSummary,
      LetterSummary,
    ]
    await store.letters.retry(first, RETRY)
    const { partition, items } = await store.lease(queue)
    await store.queues.complete({ queueName: queue, partition, ids: items.map(({ id }) => id) })
    for (const letter of [second, third]) await store.letters.retry(letter, RETRY)
    await store.letters.change(fourth, { status: 'Resolved', notes: 'gone', actor: 'nell' })
  })
  afterAll(() => store?.close())

  const walk = async (filter: LetterFilter, limit = 1): Promise<number[]> => {
    const found: number[] = []
    let token: string | null = null
    do {
      const page = await store.letters.list(filter, { limit, continuationToken: token })
      found.push(...page.items.map(({ dequeueCount }) => dequeueCount))
      token = page.continuationToken
    } while (token !== null)
    return found
  }
  const total = (filter: LetterFilter) => store.letters.numbers.total(filter)

  const CASES: readonly [LetterFilter, number[]][] = [
    [{ minAttempts: 1 }, [5, 4, 3, 2, 1]],
    [{ minAttempts: 4 }, [5, 4]],
    [{ minAttempts: 6 }, []],
    [{ minAttempts: 3, status: 'Resolved' }, [4, 3]],
    [{ minAttempts: 3, q: 'error of orders' }, [5, 4, 3]],
    [{ outcome: 'confirmed' }, [1]],
    [{ outcome: 'confirmed', q: 'error of' }, [1]],
    [{ outcome: 'confirmed', status: 'Pending' }, []],
    [{ outcome: 'unconfirmed' }, [3, 2]],
    [{ outcome: 'unconfirmed', status: 'Resolved', engine: 'hmac' }, [3, 2]],
    [{ outcome: 'unconfirmed', status: 'Expired' }, []],
    [{ outcome: 'unconfirmed', engine: 'tls' }, []],
    [{ outcome: 'unconfirmed', source: 'queues' }, []],
    [{ outcome: 'unconfirmed', minAttempts: 3 }, [3]],
    [{ outcome: 'unconfirmed', instanceId: 'instance-2' }, [2]],
    [{ outcome: 'unconfirmed', correlationId: 'correlation-1' }, []],
    [{ outcome: 'unconfirmed', q: 'error of' }, [3, 2]],
  ]

  it.each(CASES)('%j are found page by page, and counted', async (filter, expected) => {
    expect(await walk(filter)).toEqual(expected)
    expect(await walk(filter, 50)).toEqual(expected)
    expect(await total(filter)).toEqual({ total: expected.length, exact: true })
  })

  it('are the same for every page of a token', async () => {
    const { continuationToken } = await store.letters.list({ minAttempts: 2 }, { limit: 1 })
    for (const filter of [{ minAttempts: 3 }, {}, { minAttempts: 2, outcome: 'unconfirmed' }] as const) {
      await expect(store.letters.list(filter, { continuationToken })).rejects.toMatchObject({
        code: 'continuation_token_invalid',
      })
    }
  })

  it('are no longer unconfirmed once they came back, and stay in a walk that began before', async () => {
    const [oldest, newest] = await store.captureMany(2, () => ({
      engine: 'tls',
      dequeueCount: 7,
      originalQueue: queue,
    }))
    if (oldest === undefined || newest === undefined) throw new Error('nothing was captured')
    const first = await store.letters.list({ minAttempts: 7 }, { limit: 1 })
    store.clock.advance(SECOND)
    await reopen(store, [oldest])
    const { continuationToken } = first
    const second = await store.letters.list({ minAttempts: 7 }, { limit: 5, continuationToken })
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual([newest, oldest])
    for (const letter of (await store.letters.list({ engine: 'tls' })).items)
      await store.letters.retry(letter, RETRY)
    expect(await total({ outcome: 'unconfirmed', engine: 'tls' })).toEqual({ total: 2, exact: true })
    await reopen(store, [oldest, newest])
    expect(await total({ outcome: 'unconfirmed', engine: 'tls' })).toEqual({ total: 0, exact: true })
    expect(await walk({ outcome: 'unconfirmed', engine: 'tls' })).toEqual([])
  })

  it('may fill no page where there are many others, and the next page goes on', async () => {
    await store.capture({ engine: 'spn', dequeueCount: 9 })
    store.clock.advance(SECOND)
    await cloneLetter(store, await store.capture({ engine: 'spn' }), 10_500)
    const { items, continuationToken } = await store.letters.list({ engine: 'spn', minAttempts: 8 })
    expect([items, continuationToken]).toEqual([[], expect.any(String)])
    expect(await walk({ engine: 'spn', minAttempts: 8 })).toEqual([9])
    expect(await total({ engine: 'spn', fromDate: store.clock.now() })).toEqual({
      total: 10_000,
      exact: false,
    })
  })
})
