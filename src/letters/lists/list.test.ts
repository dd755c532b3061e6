import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { captureFromQueue, cloneLetter, reopen, settle } from '../../../test/world/letter-acts.ts'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { keysOf } from '../../../test/world/row-keys.ts'
import { stores } from '../../../test/world/stores.ts'
import { later } from '../../core/clock.ts'
import { encodePageToken } from '../../core/page-token.ts'
import type { LetterId } from '../letter.ts'
import { DrawerLabels } from '../numbers/find-drawers.ts'
import { filterFields, type LetterFilter } from './filter.ts'
import { listLetters } from './list.ts'

const SECOND = 1_000_000n

describe.each(stores)('lists of letters on $name', (kind) => {
  let store: LetterStore
  beforeAll(async () => {
    store = await LetterStore.open(kind)
  })
  afterAll(() => store?.close())

  /** What a server has read stays known to it. */
  const labels = new DrawerLabels()
  const page = (filter: LetterFilter, token: string | null = null, limit = 50) =>
    listLetters(store.db, filter, { limit, token, now: store.clock.now() }, labels)

  /** All pages of a walk; `between` runs after each. */
  const walk = async (
    filter: LetterFilter,
    limit: number,
    between: () => Promise<void> = async () => {},
  ): Promise<LetterId[]> => {
    const ids: LetterId[] = []
    let token: string | null = null
    do {
      const { items, continuationToken } = await page(filter, token, limit)
      ids.push(...items.map(({ id }) => id))
      token = continuationToken
      await between()
    } while (token !== null)
    return ids
  }

  it('are empty where nothing matches', async () => {
    expect(await page({ engine: 'nobody' })).toEqual({ items: [], continuationToken: null })
    expect(await page({ instanceId: 'nobody' })).toEqual({ items: [], continuationToken: null })
    expect(await page({ originalQueue: 'with\0nul' })).toEqual({ items: [], continuationToken: null })
  })

  it('show the newest failure first, ties by number, and the fields of a letter', async () => {
    const engine = 'newest'
    const first = await store.capture({ engine, instanceId: 'a/b', dequeueCount: 4 })
    store.clock.advance(SECOND)
    const [second, third] = await store.captureMany(2, () => ({ engine }))
    const { items, continuationToken } = await page({ engine })
    expect(items.map(({ id }) => id)).toEqual([third, second, first])
    expect(continuationToken).toBeNull()
    expect(items[2]).toMatchObject({
      engine,
      instanceId: 'a/b',
      rowKey: expect.stringMatching(keysOf('a%2Fb', '20270115T080000000000Z')),
      source: 'http',
      originalQueue: 'hmac-rotation-queue',
      status: 'Pending',
      errorClass: 'TypeError',
      errorMessage: 'the key is gone',
      dequeueCount: 4,
      resolvedAt: null,
    })
    expect(items[2]?.signature).toMatch(/^1-/)
    expect(items[2]).not.toHaveProperty('payload')
  })

  it('combine all filters', async () => {
    const engine = 'combined'
    const start = store.clock.now()
    const ids: LetterId[] = []
    for (let i = 0; i < 16; i++) {
      store.clock.advance(SECOND)
      ids.push(
        await store.capture({
          engine,
          source: i & 1 ? 'http' : 'engines',
          originalQueue: i & 2 ? 'one' : null,
          instanceId: i & 4 ? 'publisher' : 'site-9',
          correlationId: `c-${i % 3}`,
          errorClass: i & 8 ? 'TypeError' : 'Timeout',
        }),
      )
    }
    await settle(store, ids[3] as LetterId, 'Resolved')
    await settle(store, ids[7] as LetterId, 'Expired')
    const shown = async (filter: LetterFilter) =>
      (await page({ engine, ...filter })).items.map(({ id }) => ids.indexOf(id)).sort((a, b) => a - b)
    const all = ids.map((_, i) => i)
    const [sample] = (await page({ engine, fromDate: later(start, 16n * SECOND) })).items
    expect(await shown({})).toEqual(all)
    expect(await shown({ source: 'http' })).toEqual(all.filter((i) => i & 1))
    expect(await shown({ originalQueue: 'one' })).toEqual(all.filter((i) => i & 2))
    expect(await shown({ instanceId: 'publisher' })).toEqual(all.filter((i) => i & 4))
    expect(await shown({ correlationId: 'c-1' })).toEqual(all.filter((i) => i % 3 === 1))
    expect(await shown({ signature: sample?.signature ?? '' })).toEqual(all.filter((i) => i & 8))
    expect(await shown({ status: 'Resolved' })).toEqual([3])
    expect(await shown({ status: 'Expired', source: 'http', originalQueue: 'one' })).toEqual([7])
    expect(await shown({ status: 'Pending', instanceId: 'publisher', source: 'http' })).toEqual([5, 13, 15])
    expect(await shown({ instanceId: 'publisher', correlationId: 'c-0', source: 'engines' })).toEqual([6, 12])
    const [fromDate, toDate] = [later(start, 4n * SECOND), later(start, 7n * SECOND)]
    expect(await shown({ fromDate, toDate })).toEqual([3, 4, 5])
    expect(await shown({ fromDate, toDate, correlationId: 'c-1' })).toEqual([4])
    expect((await page({ fromDate, toDate })).items).toHaveLength(3)
    for (const filter of [
      {},
      { source: 'http' },
      { instanceId: 'publisher' },
      { status: 'Pending' },
    ] as const) {
      const whole = (await page({ engine, ...filter })).items.map(({ id }) => id)
      for (const limit of [1, 2, 5]) expect(await walk({ engine, ...filter }, limit)).toEqual(whole)
    }
  })

  it('know the letter of a plain queue by its source id', async () => {
    const id = await captureFromQueue(store, 'item-1', 'orders')
    for (const filter of [{ instanceId: 'item-1' }, { correlationId: 'item-1' }]) {
      expect((await page(filter)).items).toMatchObject([
        {
          id,
          instanceId: 'item-1',
          correlationId: 'item-1',
          originalQueue: 'orders',
          deadQueue: 'orders-dead',
        },
      ])
      expect((await page({ ...filter, status: 'Resolved' })).items).toEqual([])
      expect((await page({ ...filter, engine: 'hmac' })).items).toEqual([])
      expect((await page({ ...filter, toDate: store.clock.now() })).items).toEqual([])
    }
    expect((await page({ instanceId: 'item-1', correlationId: 'item-1' })).items).toHaveLength(1)
    expect((await page({ instanceId: 'item-1', correlationId: 'item-2' })).items).toEqual([])
  })

  it('are the same over many drawers as over few', async () => {
    const engine = 'many-drawers'
    const ids = await store.captureMany(160, (i) => ({ engine, originalQueue: `queue-${(i * 7) % 80}` }))
    const walked = () => walk({ engine }, 50)
    expect(await walked()).toEqual(ids.toReversed())
    await cloneLetter(store, await store.capture({ engine: 'louder' }), 1_100)
    expect(await walked()).toEqual(ids.toReversed())
    expect(await walk({ engine, status: 'Pending' }, 70)).toEqual(ids.toReversed())
    expect(await walk({ engine, status: 'Expired' }, 70)).toEqual([])
  })

  it('leave nothing out where more is asked for than a walk gives', async () => {
    const engine = 'more-than-a-walk'
    await cloneLetter(store, await store.capture({ engine }), 4_500)
    for (const filter of [{ engine }, { engine, status: 'Pending' }] as const)
      expect(new Set(await walk(filter, 10_000)).size).toBe(4_501)
  })

  it('refuse a token of another filter, of another list, or of nobody', async () => {
    const engine = 'tokens'
    await store.captureMany(3, () => ({ engine }))
    const { continuationToken } = await page({ engine }, null, 1)
    const refused = { code: 'continuation_token_invalid' }
    expect((await page({ engine }, continuationToken, 2)).items).toHaveLength(2)
    await expect(page({ engine, status: 'Pending' }, continuationToken)).rejects.toMatchObject(refused)
    await expect(page({}, continuationToken)).rejects.toMatchObject(refused)
    await expect(page({ engine }, `${continuationToken}x`)).rejects.toMatchObject(refused)
    const fields = filterFields({ engine })
    const cursor = { at: '1', id: '1', since: '1', seen: kind.name === 'sqlite' ? '[]' : '5:5:' }
    expect((await page({ engine }, encodePageToken(fields, cursor))).items).toEqual([])
    for (const forged of [
      {},
      { ...cursor, at: 'x' },
      { ...cursor, id: '9223372036854775808' },
      { ...cursor, seen: '' },
      { ...cursor, seen: '7:6:' },
      { ...cursor, seen: '5:9:3' },
      { ...cursor, seen: '5:9:9' },
      { ...cursor, seen: '["1.1"' },
    ]) {
      const token = encodePageToken(fields, forged as Record<string, string>)
      await expect(page({ engine }, token)).rejects.toMatchObject(refused)
    }
  })

  describe('walked while letters are reopened', () => {
    it('show a letter where it was, though it is on top for everybody else', async () => {
      const engine = 'jumping'
      const ids: LetterId[] = []
      for (let i = 0; i < 5; i++) {
        store.clock.advance(SECOND)
        ids.push(await store.capture({ engine }))
      }
      const [oldest] = ids as [LetterId]
      let done = false
      const seen = await walk({ engine }, 2, async () => {
        if (done) return
        done = true
        store.clock.advance(SECOND)
        await reopen(store, [oldest])
      })
      expect(seen).toEqual(ids.toReversed())
      expect((await page({ engine })).items[0]?.id).toBe(oldest)
      // What happened before a walk began is not undone by it, even at the same instant.
      expect(await walk({ engine }, 2)).toEqual([oldest, ...ids.slice(1).toReversed()])
    })

    it('show it once when it was on an earlier page', async () => {
      const engine = 'seen-before'
      const ids = await store.captureMany(6, () => ({ engine }))
      const newest = ids.at(-1) as LetterId
      let turns = 0
      const seen = await walk({ engine }, 2, async () => {
        if (turns++ === 0) await reopen(store, [newest])
        else await reopen(store, [ids[0] as LetterId, newest])
      })
      expect(seen).toEqual(ids.toReversed())
    })

    it('follow it through other filters', async () => {
      const ids = await store.captureMany(6, () => ({
        engine: 'hmac',
        instanceId: 'follow',
        correlationId: 'all',
      }))
      for (const filter of [
        { instanceId: 'follow' },
        { correlationId: 'all' },
        { instanceId: 'follow', source: 'http' },
      ] as const) {
        const before = await walk(filter, 10)
        expect([...before].sort()).toEqual([...ids].sort())
        store.clock.advance(SECOND)
        let reopened = false
        const seen = await walk(filter, 2, async () => {
          if (reopened) return
          reopened = true
          store.clock.advance(SECOND)
          await reopen(store, [before.at(-1) as LetterId, before.at(-2) as LetterId])
        })
        expect(seen).toEqual(before)
      }
    })
  })
})
