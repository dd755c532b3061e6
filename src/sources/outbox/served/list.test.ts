import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OUTBOX_NOW, PostedOutbox, type TestRow } from '../../../../test/world/outbox-post.ts'
import { stores } from '../../../../test/world/stores.ts'
import { instant } from '../../../core/clock.ts'
import { formatMicros } from '../../../core/timestamp.ts'
import { LIST_REACH, type ListRequest, listMessages, snippetOf } from './list.ts'

const SECOND = 1_000_000n
const ago = (seconds: number) => OUTBOX_NOW - BigInt(seconds) * SECOND
const shown = (micros: bigint) => formatMicros(instant(micros))
const ALL: ListRequest = { status: null, eventType: null, tenantId: null, page: 1, pageSize: 50 }
const TENANT = 'b06f9f5e-4b0c-4a5f-9d4c-3f8f6a1f0a11'
const OTHER_TENANT = 'c06f9f5e-4b0c-4a5f-9d4c-3f8f6a1f0a11'

/** Every row is known by its line. */
const ROWS: readonly TestRow[] = [
  { orderingKey: 'late', createdAt: ago(50), retryCount: 1, nextAttemptAt: ago(1), error: 'refused' },
  { orderingKey: 'young', createdAt: ago(10), eventType: 'order.paid' },
  { orderingKey: 'old', createdAt: ago(90) },
  { orderingKey: 'parked', createdAt: ago(80), nextAttemptAt: 'never' },
  {
    orderingKey: 'claimed',
    createdAt: ago(99),
    claimedUntil: ago(-30),
    retryCount: 2,
    tenantId: OTHER_TENANT,
  },
  { orderingKey: 'dead-first', createdAt: ago(70), deadAt: ago(60), retryCount: 6, error: 'gone' },
  { orderingKey: 'dead-later', createdAt: ago(75), deadAt: ago(30), retryCount: 6, eventType: 'order.paid' },
  { orderingKey: 'done-first', createdAt: ago(200), processedAt: ago(100) },
  { orderingKey: 'done-later', createdAt: ago(300), processedAt: ago(20), tenantId: OTHER_TENANT },
  { orderingKey: 'discarded', createdAt: ago(400), deadAt: ago(350), processedAt: ago(90), error: 'gone' },
]

describe.each(
  stores.flatMap((kind) => [
    { kind, of: 'us' as const },
    { kind, of: 'others' as const },
  ]),
)('the messages in a table of $of on $kind.name', ({ kind, of }) => {
  let outbox: PostedOutbox

  beforeAll(async () => {
    outbox = of === 'us' ? await PostedOutbox.open(kind) : await PostedOutbox.openAdopted(kind)
    for (const [number, row] of ROWS.entries()) {
      const id = of === 'us' ? {} : { id: `00000000-0000-4000-8000-00000000000${number}` }
      await outbox.insert({ tenantId: TENANT, ...row, ...id })
    }
  })
  afterAll(() => outbox?.close())

  const list = (changes: Partial<ListRequest>) =>
    outbox.db.session('test', (session) => listMessages(session, outbox.layout, { ...ALL, ...changes }))
  const linesOf = async (changes: Partial<ListRequest>) =>
    (await list(changes)).items.map(({ orderingKey }) => orderingKey)

  it('that are pending are those that are neither processed nor dead, in the order of delivery', async () => {
    expect(await linesOf({ status: 'pending' })).toEqual(['old', 'young', 'late', 'claimed', 'parked'])
  })

  it('that have failed are the pending ones with a retry', async () => {
    const { items, total } = await list({ status: 'failed' })
    expect(items.map(({ orderingKey }) => orderingKey)).toEqual(['late', 'claimed'])
    expect(items.every(({ retryCount, status }) => retryCount > 0 && status === 'failed')).toBe(true)
    expect(total).toBe(2)
  })

  it('that are dead come with the latest death first', async () => {
    expect(await linesOf({ status: 'dead' })).toEqual(['dead-later', 'dead-first'])
  })

  it('that are processed come with the latest first, discarded ones among them', async () => {
    expect(await linesOf({ status: 'processed' })).toEqual(['done-later', 'discarded', 'done-first'])
  })

  it('of all states come with the highest id first', async () => {
    expect(await linesOf({})).toEqual(ROWS.map(({ orderingKey }) => orderingKey).reverse())
  })

  it('have everything but their payload', async () => {
    const { items } = await list({ status: 'failed', pageSize: 1 })
    expect(items).toEqual([
      {
        id: of === 'us' ? '1' : '00000000-0000-4000-8000-000000000000',
        tenantId: TENANT,
        eventType: 'order.created',
        createdAt: shown(ago(50)),
        retryCount: 1,
        processedAt: null,
        deadAt: null,
        nextAttemptAt: shown(ago(1)),
        status: 'failed',
        idempotencyKey: of === 'us' ? expect.stringMatching(/^[0-9a-f-]{36}$/) : null,
        orderingKey: 'late',
        lastErrorSnippet: 'refused',
      },
    ])
    const [dead] = (await list({ status: 'dead' })).items
    expect(dead).toMatchObject({ status: 'dead', deadAt: shown(ago(30)), processedAt: null, retryCount: 6 })
    const [processed] = (await list({ status: 'processed' })).items
    expect(processed).toMatchObject({ status: 'processed', processedAt: shown(ago(20)), deadAt: null })
  })

  it('that wait for another have no next attempt', async () => {
    expect((await list({ status: 'pending' })).items.at(-1)).toMatchObject({
      orderingKey: 'parked',
      nextAttemptAt: null,
      status: 'pending',
    })
  })

  it('can be asked for by type and tenant, and are counted so', async () => {
    expect(await linesOf({ eventType: 'order.paid' })).toEqual(['dead-later', 'young'])
    expect(await linesOf({ tenantId: OTHER_TENANT })).toEqual(['done-later', 'claimed'])
    expect(await linesOf({ tenantId: OTHER_TENANT, status: 'pending' })).toEqual(['claimed'])
    expect(await list({ status: 'pending', eventType: 'order.created', pageSize: 2 })).toMatchObject({
      items: [{ orderingKey: 'old' }, { orderingKey: 'late' }],
      total: 4,
      totalIsCapped: false,
    })
    expect(await list({ tenantId: "' OR true --" })).toMatchObject({ items: [], total: 0 })
    expect(await list({ tenantId: TENANT, eventType: 'order.paid', status: 'dead' })).toMatchObject({
      items: [{ orderingKey: 'dead-later' }],
      total: 1,
    })
  })

  it('come in pages that follow each other', async () => {
    const paged = async (changes: Partial<ListRequest>) => {
      const pages = [1, 2, 3, 4].map((page) => linesOf({ ...changes, page, pageSize: 2 }))
      return Promise.all(pages)
    }
    expect(await paged({ status: 'pending' })).toEqual([
      ['old', 'young'],
      ['late', 'claimed'],
      ['parked'],
      [],
    ])
    expect(await paged({ eventType: 'order.created', status: 'processed' })).toEqual([
      ['done-later', 'discarded'],
      ['done-first'],
      [],
      [],
    ])
    expect(await list({ page: 999_999_999, pageSize: 200 })).toEqual({
      items: [],
      total: 10,
      totalIsCapped: false,
    })
  })
})

describe.each(stores)('an outbox with more messages than are looked at, on $name', (kind) => {
  it('says that its total is capped', async () => {
    const outbox = await PostedOutbox.open(kind)
    try {
      const rows = LIST_REACH + 1
      const numbers =
        kind.name === 'postgres'
          ? `SELECT n FROM generate_series(1, ${rows}) AS n`
          : `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${rows}) SELECT n FROM numbers`
      await outbox.execute(
        `INSERT INTO outbox_messages (tenant_id, event_type, payload)
         SELECT 't', CASE WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END, '' FROM (${numbers}) AS numbers`.replace(
          `''`,
          kind.name === 'postgres' ? `''` : `x''`,
        ),
      )
      const list = (changes: Partial<ListRequest>) =>
        outbox.db.session('test', (session) =>
          listMessages(session, outbox.layout, { ...ALL, pageSize: 1, ...changes }),
        )
      const capped = { total: LIST_REACH, totalIsCapped: true }
      expect(await list({ status: 'pending' })).toMatchObject(capped)
      expect(await list({})).toMatchObject(capped)
      expect(await list({ eventType: 'even' })).toMatchObject({ total: 50_000, totalIsCapped: true })
      expect((await list({ page: LIST_REACH })).items).toHaveLength(1)
      expect((await list({ page: LIST_REACH + 1 })).items).toEqual([])
      expect(await list({ status: 'dead' })).toMatchObject({ total: 0, totalIsCapped: false })
    } finally {
      await outbox.close()
    }
  })
})

describe('the beginning of an error', () => {
  it('is all of a short one', () => {
    expect(snippetOf('refused')).toBe('refused')
    expect(snippetOf('x'.repeat(200))).toHaveLength(200)
  })

  it('ends with a whole character', () => {
    expect(snippetOf('x'.repeat(201))).toBe('x'.repeat(200))
    expect(snippetOf(`${'x'.repeat(199)}😀y`)).toBe('x'.repeat(199))
    expect(snippetOf(`${'x'.repeat(198)}😀y`)).toBe(`${'x'.repeat(198)}😀`)
  })
})
