import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { captureFromQueue } from '../../test/world/letter-acts.ts'
import { LetterStore } from '../../test/world/letter-store.ts'
import { keysOf } from '../../test/world/row-keys.ts'
import { stores } from '../../test/world/stores.ts'
import type { LetterId } from '../letters/letter.ts'
import { EngineDirectory } from '../queues/engines/engine-directory.ts'
import { sql } from '../store/database.ts'
import type { HistoryFilter } from './entry.ts'
import { historyOfLetter } from './get.ts'
import { History } from './history.ts'
import { recordHistory } from './record.ts'

const KEY_TIME = '20270115T080000000000Z'
const KEY = keysOf('item-7', KEY_TIME)
const removeLetter = sql('test.takeLetterAway', 'DELETE FROM bartleby.letters WHERE id = $1')

describe.each(stores)('the capture of a letter of a plain queue, on $name,', (kind) => {
  let store: LetterStore
  let history: History
  let seventh: LetterId

  beforeAll(async () => {
    store = await LetterStore.open(kind)
    history = new History(store.db, store.clock, new EngineDirectory({ context: 'publisher' }))
    await store.captureMany(5)
    // All in the same microsecond.
    const ids: LetterId[] = []
    for (let i = 0; i < 30; i++) ids.push(await captureFromQueue(store, `item-${i}`))
    seventh = ids[7] ?? seventh
  })
  afterAll(() => store?.close())

  const shown = { engine: 'queues', operation: 'capture', status: 'Succeeded' } as const
  const listed = async (filter: HistoryFilter) => (await history.list(filter)).items
  const record = (correlationId: string, letterId: bigint | null = null) =>
    store.db.transaction('test', (tx) =>
      recordHistory(tx, [
        {
          ...{ ...shown, engine: 'queues', operation: 'expire', instanceId: null, correlationId, letterId },
          createdAt: store.clock.now(),
          durationMs: 0,
        },
      ]),
    )

  it('has the source id of the letter as its correlation and its instance', async () => {
    const [{ rowKey } = { rowKey: '' }] = await listed({ correlationId: 'item-7' })
    const entry = await history.get('queues', rowKey)
    expect(entry).toMatchObject({
      ...{ ...shown, rowKey: expect.stringMatching(KEY), correlationId: 'item-7', instanceId: 'item-7' },
      letter: { engine: 'queues', rowKey: expect.stringMatching(KEY) },
    })
    const others = [`item-7-${KEY_TIME}`, rowKey.replace('T080000000000', 'T080000000001'), `7${rowKey}`]
    for (const other of others) {
      await expect(history.get('queues', other)).rejects.toMatchObject({ code: 'history_unknown' })
    }
    await expect(history.get('http', rowKey)).rejects.toMatchObject({ code: 'history_unknown' })
  })

  it('is found by each of them, and by what else it is', async () => {
    const one = [{ ...shown, correlationId: 'item-7' }]
    expect(await listed({ correlationId: 'item-7' })).toMatchObject(one)
    expect(await listed({ instanceId: 'item-7' })).toMatchObject(one)
    expect(await listed({ instanceId: 'item-7', engine: 'queues', operation: 'capture' })).toMatchObject(one)
    expect(await listed({ correlationId: 'item-7', to: store.clock.now() })).toEqual([])
    expect(await listed({ correlationId: 'item-7', engine: 'http' })).toEqual([])
    const names = (await listed({ engine: 'queues' })).map(({ correlationId }) => correlationId)
    expect(names.sort()).toEqual(Array.from({ length: 30 }, (_, i) => `item-${i}`).sort())
    expect(await listed({})).toHaveLength(35)
  })

  it('comes before what happens in the same microsecond', async () => {
    const [row] = await record('item-7', seventh)
    expect(row?.createdAt).toBe(store.clock.now())
    const keys = (await listed({ correlationId: 'item-7' })).map(({ rowKey }) => rowKey)
    expect(keys).toEqual([...new Set(keys)].sort().reverse())
    expect(keys).toHaveLength(2)
    await record('of-another-run', seventh)
  })

  it('is the oldest in the history of its letter', async () => {
    const events = await store.db.session('test', (session) => historyOfLetter(session, seventh, 10))
    expect(events.map(({ operation }) => operation)).toEqual(['expire', 'expire', 'capture'])
    const newest = await store.db.session('test', (session) => historyOfLetter(session, seventh, 2))
    expect(newest).toEqual(events.slice(0, 2))
  })

  it('is among the others in the pages of a correlation id', async () => {
    const first = await history.list({ correlationId: 'item-7' }, { limit: 1 })
    const { continuationToken } = first
    const second = await history.list({ correlationId: 'item-7' }, { limit: 1, continuationToken })
    expect([...first.items, ...second.items].map(({ operation }) => operation)).toEqual(['expire', 'capture'])
    expect(second.continuationToken).toBeNull()
  })

  it('stands without a name when its letter is gone', async () => {
    const id = await captureFromQueue(store, 'short-lived')
    await store.db.transaction('test', (tx) => tx.run(removeLetter, id))
    expect((await listed({})).filter(({ correlationId }) => correlationId === '')).toMatchObject([
      { ...shown, rowKey: expect.stringMatching(keysOf('', KEY_TIME)), instanceId: '' },
    ])
    expect(await listed({ correlationId: 'short-lived' })).toEqual([])
  })
})
