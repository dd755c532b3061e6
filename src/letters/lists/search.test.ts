import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { captureFromQueue, cloneLetter, reopen, settle } from '../../../test/world/letter-acts.ts'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { later } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import type { Rounds } from '../../core/rounds.ts'
import { sql } from '../../store/database.ts'
import type { LetterId } from '../letter.ts'
import type { LetterFilter } from './filter.ts'
import { listLetters } from './list.ts'
import { needleOf } from './search.ts'
import { filing } from './texts.ts'

const WAITING = sql('test.waiting', 'SELECT count(*) AS ranges FROM bartleby.letters_to_file')
const WAIT = sql(
  'test.wait',
  'INSERT INTO bartleby.letters_to_file (first_letter, last_letter) SELECT min(id), max(id) FROM bartleby.letters',
)
const FILED = sql('test.filed', 'SELECT count(*) AS texts FROM bartleby.letter_texts')

describe.each(stores)('search on $name', (kind) => {
  let store: LetterStore
  let clerk: Rounds
  beforeAll(async () => {
    store = await LetterStore.open(kind)
    clerk = filing(store.db, store.clock, silentLog)
  })
  afterAll(async () => {
    await clerk?.stop()
    await store?.close()
  })

  const walk = async (filter: LetterFilter, limit = 50): Promise<LetterId[]> => {
    const ids: LetterId[] = []
    let token: string | null = null
    do {
      const page = await listLetters(store.db, filter, { limit, token, now: store.clock.now() })
      ids.push(...page.items.map(({ id }) => id))
      token = page.continuationToken
    } while (token !== null)
    return ids
  }

  /** Puts so many letters on top that a first look finds none of the others. */
  const bury = async (): Promise<void> => {
    store.clock.advance(1_000n)
    const top = await store.capture({ engine: 'noise', errorMessage: 'noise', payload: Buffer.from('noise') })
    await cloneLetter(store, top, 2_100)
  }

  it('finds a part of whatever text a letter has, whatever its case', async () => {
    const id = await store.capture({
      instanceId: 'Instance-ÄÖ',
      correlationId: 'corr%_id',
      sourceId: 'so"urce\\77',
      errorClass: 'KeyLostError',
      errorMessage: "can't find \u{1F511} key",
      reference: 'Customer\u00007',
      headers: Buffer.from('X-Trace: 日本語'),
      payload: Buffer.from('{"a": [1, 2,3], "weird": "==>"}'),
    })
    const queries = [
      'stance-äö',
      'r%_i',
      'o"urce\\',
      'LOSTERR',
      '\u{1F511} KEY',
      "N'T",
      'MER7',
      '日本語',
      '": [1',
      '==>',
      ' 2,3]',
    ]
    for (const file of [false, true]) {
      if (file) {
        await clerk.now()
        await bury()
      }
      for (const q of queries) expect({ q, ids: await walk({ q }) }).toEqual({ q, ids: [id] })
      for (const q of ['%%%', 'c_rr', 'key  ', '日本人', '==<', 'corr%id', '___'])
        expect(await walk({ q })).toEqual([])
    }
  })

  it('does not find bytes that are no text', async () => {
    await store.capture({ payload: Buffer.concat([Buffer.from('findable'), Buffer.from([0xff, 0xfe])]) })
    expect(await walk({ q: 'findable' })).toEqual([])
  })

  it('combines with every filter, before and after the letters are filed', async () => {
    const ids: LetterId[] = []
    for (let i = 0; i < 8; i++) {
      store.clock.advance(1n)
      ids.push(
        await store.capture({
          engine: i & 1 ? 'tls' : 'spn',
          instanceId: i & 2 ? 'here' : 'there',
          correlationId: `c${i % 4}`,
          payload: Buffer.from(i & 4 ? 'needle in hay' : 'nothing but hay'),
        }),
      )
    }
    await settle(store, ids[7] as LetterId, 'Resolved')
    const queued = await captureFromQueue(store, 'item-with-needle')
    const shown = async (filter: LetterFilter) =>
      (await walk({ q: 'NEEDLE', ...filter }, 3)).map((id) => ids.indexOf(id))
    const check = async () => {
      expect(await shown({})).toEqual([-1, 7, 6, 5, 4])
      expect(await shown({ engine: 'tls' })).toEqual([7, 5])
      expect(await shown({ engine: 'tls', status: 'Pending' })).toEqual([5])
      expect(await shown({ instanceId: 'here' })).toEqual([7, 6])
      expect(await shown({ correlationId: 'c1' })).toEqual([5])
      expect(await walk({ q: 'needle', instanceId: 'item-with-needle' })).toEqual([queued])
      expect(await shown({ engine: 'queues', status: 'Resolved' })).toEqual([])
    }
    await check()
    await clerk.now()
    await check()
    await bury()
    await check()
  })

  it('finds a reopened letter by its new error, not by its old one', async () => {
    const id = await store.capture({ errorMessage: 'ancient trouble' })
    await clerk.now()
    await reopen(store, [id], 'modern trouble')
    expect(await walk({ q: 'modern t' })).toEqual([id])
    expect(await walk({ q: 'ancient' })).toEqual([])
    await bury()
    expect(await walk({ q: 'modern t' })).toEqual([id])
    expect(await walk({ q: 'ancient' })).toEqual([])
    await clerk.now()
    expect(await walk({ q: 'modern t' })).toEqual([id])
    expect(await walk({ q: 'ancient' })).toEqual([])
  })

  it('walks on as it began while letters are reopened', async () => {
    const ids: LetterId[] = []
    for (let i = 0; i < 5; i++) {
      store.clock.advance(1n)
      ids.push(await store.capture({ engine: 'steady', errorMessage: 'steady trouble' }))
    }
    const filter = { q: 'steady', engine: 'steady' }
    const expected = await walk(filter)
    expect(expected).toEqual(ids.toReversed())
    const first = await listLetters(store.db, filter, { limit: 2, token: null, now: store.clock.now() })
    store.clock.advance(1n)
    await reopen(store, [ids[0] as LetterId, ids[4] as LetterId], 'still steady')
    await reopen(store, [ids[1] as LetterId], 'over')
    const rest = await listLetters(store.db, filter, {
      limit: 9,
      token: first.continuationToken,
      now: store.clock.now(),
    })
    expect(rest.items.map(({ id }) => id)).toEqual([ids[2], ids[0]])
  })

  it('gives the same letters, in the same order, by every way it can take', async () => {
    const engine = 'ways'
    const words = ['alpha', 'beta', 'gamma', 'Alphabet', '%%', 'x_y', 'ünï', '漢字漢']
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.constantFrom(...words), { maxLength: 3 }), { minLength: 1, maxLength: 6 }),
        fc.constantFrom('alp', 'ALPHA', 'a b', 'beta', '%% ', 'x_y', 'ÜNÏ', '漢字漢', 'bet'),
        fc.integer({ min: 1, max: 4 }),
        async (letters, q, limit) => {
          await store.captureMany(letters.length, (i) => ({
            engine,
            errorMessage: (letters[i] ?? []).join(' '),
            payload: Buffer.from('{}'),
          }))
          const newest = await walk({ engine, q }, limit)
          await clerk.now()
          expect(await walk({ engine, q }, limit)).toEqual(newest)
        },
      ),
      { numRuns: 15 },
    )
    const before = new Map<string, LetterId[]>()
    for (const q of ['alp', 'a b', '%% ', '漢字漢']) before.set(q, await walk({ q, source: 'http' }))
    await bury()
    for (const [q, ids] of before) expect(await walk({ q, source: 'http' }, 7)).toEqual(ids)
  })

  it('is the same also when the text is too common for the index, or too much is not filed yet', async () => {
    const q = 'commonplace'
    const first = await store.capture({ errorMessage: q })
    const toDate = later(store.clock.now(), 1n)
    await bury()
    const last = await store.capture({ errorMessage: q })
    await cloneLetter(store, last, 20_050)
    await bury()
    await store.db.transaction('test', (tx) => tx.run(WAIT))
    const find = async () => {
      const page = await listLetters(store.db, { q }, { limit: 100, token: null, now: store.clock.now() })
      expect(await walk({ q, toDate })).toEqual([first])
      return page.items.map(({ id }) => id)
    }
    const found = await find()
    expect(found).toHaveLength(100)
    expect(new Set(found).size).toBe(100)
    await clerk.now()
    expect(await find()).toEqual(found)
  })

  it('files what waits, in batches, and leaves nothing behind', async () => {
    await store.captureMany(3)
    await clerk.now()
    const [waiting] = await store.db.session('test', (session) => session.rows<{ ranges: number }>(WAITING))
    expect(Number(waiting?.ranges)).toBe(0)
    const [before] = await store.db.session('test', (session) => session.rows<{ texts: number }>(FILED))
    const ids = await store.captureMany(405)
    await clerk.now()
    expect(clerk.state()).toMatchObject({ failures: 0 })
    const [after] = await store.db.session('test', (session) => session.rows<{ texts: number }>(FILED))
    expect(Number(after?.texts)).toBe(Number(before?.texts) + ids.length)
  })
})

describe('the text to search for', () => {
  it.each(['', 'ab', 'a\0b', '漢字', 'x'.repeat(201)])('is refused when it is %j', (q) => {
    expect(() => needleOf(q)).toThrow('q is invalid; it needs 3 to 200 characters')
  })

  it('may have 3 to 200 characters, of any kind', () => {
    expect(needleOf('ABC')).toBe('abc')
    expect(needleOf('\u{1F511}'.repeat(200))).toHaveLength(400)
    expect(needleOf('   ')).toBe('   ')
  })
})
