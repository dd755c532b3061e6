import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { captureFromQueue, reopen } from '../../../test/world/letter-acts.ts'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { type Letter, type LetterId, letterId } from '../letter.ts'
import { lockLetter, readFailures, readLetter, readLetterById, readUnlabelled } from './detail.ts'

describe.each(stores)('a letter on $name', (kind) => {
  let store: LetterStore
  beforeAll(async () => {
    store = await LetterStore.open(kind)
  })
  afterAll(() => store?.close())

  const byKey = (engine: string, rowKey: string) =>
    store.db.session('test', (session) => readLetter(session, engine, rowKey))

  const byId = async (id: LetterId): Promise<Letter> => {
    const letter = await store.db.session('test', (session) => readLetterById(session, id))
    if (letter === null) throw new Error(`there is no letter ${id}`)
    return letter
  }

  it('is read by its row key, with its bytes as they came', async () => {
    const payload = Uint8Array.from({ length: 512 }, (_, i) => i % 256)
    const id = await store.capture({
      engine: 'tls',
      instanceId: 'eu/1?#\\%-20260101T000000000000Z',
      payload,
      headers: Buffer.from('{"x":1}'),
      encoding: 'json\0',
      kind: 'order',
      reference: 'customer\u00007',
      errorStack: 'at work',
      failedBy: 'worker-3',
    })
    const { rowKey } = await byId(id)
    const letter = await byKey('tls', rowKey)
    expect(letter).toEqual(await byId(id))
    expect(letter).toMatchObject({
      id,
      version: 1,
      encoding: 'json\0',
      kind: 'order',
      reference: 'customer\u00007',
      errorStack: 'at work',
      failedBy: 'worker-3',
      editedPayload: null,
      position: null,
      itemCreatedAt: null,
    })
    expect(Buffer.from(letter?.payload ?? []).equals(payload)).toBe(true)
    expect(Buffer.from(letter?.headers ?? []).toString()).toBe('{"x":1}')
    expect(await byKey('hmac', rowKey)).toBeNull()
    expect(await byKey('tls', rowKey.replace('Z', ''))).toBeNull()
    expect(await byKey('tls', `other-${rowKey}`)).toBeNull()
    expect(await byKey('tls', 'nul%00-20260101T000000000000Z')).toBeNull()
  })

  it('of a plain queue is known by the id of its item, and lies in its dead queue', async () => {
    const id = await captureFromQueue(store, '2abc', 'orders')
    const { rowKey } = await byId(id)
    expect(rowKey).toMatch(/^2abc-\d{8}T\d{24}Z$/)
    expect(await byKey('queues', rowKey)).toMatchObject({
      id,
      instanceId: '2abc',
      correlationId: '2abc',
      originalPartition: 2,
      deadQueue: 'orders-dead',
      itemCreatedAt: store.clock.now(),
      position: { part: 7, shelf: 0, leased: false, leaseDeadline: null, laidAt: store.clock.now() },
    })
  })

  it('has its failures on file, the oldest first', async () => {
    const firstAt = store.clock.now()
    const id = await store.capture({ errorMessage: 'first', dequeueCount: 3 })
    store.clock.advance(5n)
    await reopen(store, [id], 'second')
    const letter = await byId(id)
    expect(letter).toMatchObject({
      version: 2,
      dequeueCount: 4,
      errorMessage: 'second',
      firstFailureAt: firstAt,
    })
    const failures = await store.db.session('test', (session) => readFailures(session, letter))
    expect(failures).toMatchObject([
      { number: 1, failedAt: firstAt, errorMessage: 'first', errorClass: 'TypeError' },
      { number: 2, failedAt: store.clock.now(), errorMessage: 'second', failedBy: 'worker' },
    ])
  })

  it('stays as it is while it is locked', async () => {
    const id = await store.capture()
    const locked = await store.db.transaction('test', (tx) => lockLetter(tx, id))
    expect(locked).toEqual(await byId(id))
    expect(await store.db.transaction('test', (tx) => lockLetter(tx, letterId(9_999_999)))).toBeNull()
  })

  it('is left out of summaries when it is gone', async () => {
    const ids = await store.captureMany(2)
    const [first, second] = ids as [LetterId, LetterId]
    const read = (ids: LetterId[]) => store.db.session('test', (session) => readUnlabelled(session, ids))
    expect((await read([second, letterId(9_999_999), first])).map(({ id }) => id)).toEqual([second, first])
    expect(await read([])).toEqual([])
  })
})
