import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cloneLetter, reopen, settle } from '../../../test/world/letter-acts.ts'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { type LetterId, STATUSES } from '../letter.ts'
import type { LetterFilter } from './filter.ts'
import { listLetters } from './list.ts'

/** What happens between two pages. */
type Event =
  | { readonly what: 'capture'; readonly count: number }
  | { readonly what: 'reopen'; readonly which: readonly number[] }
  | { readonly what: 'settle'; readonly which: number; readonly status: number }
  | { readonly what: 'wait' }

const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ what: fc.constant('capture' as const), count: fc.integer({ min: 1, max: 3 }) }),
  fc.record({
    what: fc.constant('reopen' as const),
    which: fc.array(fc.nat(1_000), { minLength: 1, maxLength: 3 }),
  }),
  fc.record({ what: fc.constant('settle' as const), which: fc.nat(1_000), status: fc.nat(2) }),
  fc.constant({ what: 'wait' as const }),
)

describe.each(stores)('a walk over the pages of a list on $name', (kind) => {
  let store: LetterStore
  let walks = 0
  beforeAll(async () => {
    store = await LetterStore.open(kind)
  })
  afterAll(() => store?.close())

  async function* pages(filter: LetterFilter, limit: number): AsyncIterable<LetterId[]> {
    let token: string | null = null
    do {
      const page = await listLetters(store.db, filter, { limit, token, now: store.clock.now() })
      yield page.items.map(({ id }) => id)
      token = page.continuationToken
    } while (token !== null)
  }

  const all = async (filter: LetterFilter): Promise<LetterId[]> => {
    const ids: LetterId[] = []
    for await (const page of pages(filter, 100)) ids.push(...page)
    return ids
  }

  it('meets every letter that was there when it began once, in the order it began with', async () => {
    const happen = async (event: Event, engine: string, ids: readonly LetterId[]): Promise<void> => {
      const pick = (which: number): LetterId => ids[which % ids.length] as LetterId
      switch (event.what) {
        case 'capture':
          await store.captureMany(event.count, () => ({ engine, instanceId: 'site' }))
          return
        case 'reopen':
          return reopen(store, [...new Set(event.which.map(pick))])
        case 'settle': {
          const status = STATUSES[event.status]
          if (status !== undefined) await settle(store, pick(event.which), status)
          return
        }
        case 'wait':
          store.clock.advance(1n)
      }
    }
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 9 }),
        fc.array(event, { maxLength: 6 }),
        fc.array(fc.array(event, { maxLength: 3 }), { maxLength: 9 }),
        fc.integer({ min: 1, max: 4 }),
        fc.constantFrom<('engine' | 'instanceId' | 'source')[]>(
          ['engine'],
          ['engine', 'instanceId'],
          ['engine', 'source'],
        ),
        async (letters, before, between, limit, filtered) => {
          const engine = `walk-${++walks}`
          const filter: LetterFilter = {
            engine,
            ...(filtered.includes('instanceId') ? { instanceId: 'site' } : {}),
            ...(filtered.includes('source') ? { source: 'http' } : {}),
          }
          const ids = await store.captureMany(letters, () => ({ engine, instanceId: 'site' }))
          for (const event of before) await happen(event, engine, ids)
          const expected = await all(filter)
          const seen: LetterId[] = []
          let turn = 0
          for await (const page of pages(filter, limit)) {
            seen.push(...page)
            for (const event of between[turn++] ?? []) await happen(event, engine, ids)
          }
          expect(seen).toEqual(expected)
        },
      ),
      { numRuns: 40 },
    )
  })

  it('is complete while others capture and reopen at the same time', async () => {
    const engine = 'busy'
    const first = await store.capture({ engine, instanceId: 'site' })
    await cloneLetter(store, first, 400)
    store.clock.advance(1n)
    const expected = await all({ engine })
    expect(expected).toHaveLength(401)
    let walking = true
    let writes = 0
    const writer = async (lane: number): Promise<void> => {
      for (let i = lane; walking; i += 4) {
        const ids = [0, 1, 2].map((n) => expected[(i * 37 + n * 101) % expected.length] as LetterId)
        await reopen(
          store,
          ids.sort((a, b) => (a < b ? -1 : 1)),
        )
        if (i % 3 === 0) await store.capture({ engine })
        store.clock.advance(1n)
        writes++
      }
    }
    const writers = [0, 1, 2, 3].map(writer)
    const walk = async (limit: number): Promise<void> => {
      const seen: LetterId[] = []
      for await (const page of pages({ engine }, limit)) seen.push(...page)
      expect(new Set(seen).size).toBe(seen.length)
      const met = new Set(seen)
      expect(expected.filter((id) => !met.has(id))).toEqual([])
    }
    try {
      for (const limit of [7, 20, 60]) await walk(limit)
    } finally {
      walking = false
      await Promise.all(writers)
    }
    expect(writes).toBeGreaterThan(10)
  })
})
