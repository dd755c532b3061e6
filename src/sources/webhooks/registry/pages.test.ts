import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { refusalOf, WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import { instant } from '../../../core/clock.ts'
import { xid } from '../../../core/xid.ts'
import { Refused } from '../refusal.ts'
import type { Channel } from '../webhook.ts'
import { decodeCursor, encodeCursor, FIRST_PAGE, PAGE_SIZE, type Page, spanOf } from './pages.ts'

const CURSOR = 'ZGJzZ2dxdHFtZDJxYjBhYWJuN2d8MjAyNi0xMS0xNVQwMToxODozNVo='
const PLACE = { at: instant(1_794_705_515_000_000n), id: xid('dbsggqtqmd2qb0aabn7g') }
const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('a cursor', () => {
  it('is the id and the time of a row', () => {
    expect(encodeCursor(PLACE)).toBe(CURSOR)
    expect(decodeCursor(CURSOR)).toEqual(PLACE)
  })

  it('keeps microseconds, and takes times of other clients', () => {
    const fine = { ...PLACE, at: instant(PLACE.at + 123_456n) }
    expect(decodeCursor(encodeCursor(fine))).toEqual(fine)
    expect(decodeCursor(base64(`${PLACE.id}|2026-11-15T01:18:35.123456789Z`))).toEqual(fine)
    expect(decodeCursor(base64(`${PLACE.id}|2026-11-15T06:18:35.123456+05:00`))).toEqual(fine)
  })

  it.each([
    null,
    '',
    'garbage!',
    CURSOR.slice(0, -1),
    `${CURSOR} `,
    `${CURSOR}${'A'.repeat(400)}`,
    base64(''),
    base64(PLACE.id),
    base64(`${PLACE.id}|`),
    base64(`${PLACE.id}|yesterday`),
    base64(`${PLACE.id}|2026-11-15T01:18:35Z|`),
    base64('|2026-11-15T01:18:35Z'),
    base64("' OR 1=1 --|2026-11-15T01:18:35Z"),
    base64('dbsggqtqmd2qb0aabn7h|2026-11-15T01:18:35Z'),
    base64('DBSGGQTQMD2QB0AABN7G|2026-11-15T01:18:35Z'),
  ])('is not: %j', (text) => {
    expect(decodeCursor(text)).toBeNull()
    expect(spanOf({ next: text, previous: text })).toEqual(spanOf(FIRST_PAGE))
    expect(spanOf({ next: text, previous: CURSOR })).toEqual({ side: 'newer', place: PLACE })
  })

  it('cannot be given for both directions', () => {
    expect(() => spanOf({ next: CURSOR, previous: CURSOR })).toThrow(new Refused('both_cursors'))
  })
})

describe.each(stores)('lists on $name', (store) => {
  let registry: WebhookWorld
  let channel: Channel
  beforeAll(async () => {
    registry = await WebhookWorld.open(store)
    // Conditions know whole seconds only.
    registry.pass(0.9)
    channel = await registry.channel('c1')
    const other = await registry.channel('c2')
    for (let i = 0; i < 80; i++) {
      // Most of them of the same moment, so that ids decide.
      if (i % 30 === 29) registry.clock.advance(1n)
      await registry.producers.put(`p${i}`, { name: null, token: 't' }, null)
      await registry.consumer(channel, { consumerId: `k${i}` })
      if (i < 3) await registry.consumer(other, { consumerId: `k${i}` })
    }
  })
  afterAll(() => registry.close())

  const namesFrom = (last: number, first: number, prefix: string) =>
    Array.from({ length: last - first + 1 }, (_, i) => `${prefix}${last - i}`)
  const producers = async (request = FIRST_PAGE) => {
    const page = await registry.producers.list(request)
    return { ...page, items: page.items.map(({ producerId }) => producerId) }
  }
  const following = ({ last }: Page<unknown>) => ({ next: last, previous: null })
  const preceding = ({ first }: Page<unknown>) => ({ next: null, previous: first })

  it('give 25 at a time, newest first, until there are no more', async () => {
    const pages: Page<string>[] = [await producers()]
    for (let page = pages[0]; page !== undefined && page.items.length > 0; pages.push(page))
      page = await producers(following(page))
    expect(pages.map(({ items }) => items.length)).toEqual([25, 25, 25, 5, 0])
    expect(pages.flatMap(({ items }) => items)).toEqual(namesFrom(79, 0, 'p'))
    expect(pages.at(-1)).toEqual({ items: [], first: null, last: null })
  })

  it('go back page by page, each directly before the other', async () => {
    const forward = [await producers()]
    for (let i = 0; i < 3; i++) forward.push(await producers(following(forward[i] ?? expect.fail())))
    const back = [...forward].reverse()
    for (const [i, page] of back.slice(0, -1).entries()) {
      expect(await producers(preceding(page))).toEqual(back[i + 1])
    }
    const first = forward[0] ?? expect.fail()
    expect((await producers(preceding(first))).items).toEqual([])
    const { createdAt: at, id } = (await registry.producers.get('p26')) ?? expect.fail()
    expect((await producers({ next: null, previous: encodeCursor({ at, id }) })).items).toEqual(
      namesFrom(51, 27, 'p'),
    )
  })

  it('begin with the first page when a cursor is none', async () => {
    const first = await producers()
    for (const hostile of ['garbage', base64("x' OR 1=1|2026-11-15T01:18:35Z")])
      expect(await producers({ next: hostile, previous: null })).toEqual(first)
  })

  it('show one channel only', async () => {
    const page = await registry.consumers.list(channel, FIRST_PAGE)
    expect(page.items.map(({ consumerId }) => consumerId)).toEqual(namesFrom(79, 55, 'k'))
    const channels = await registry.channels.list(FIRST_PAGE)
    expect(channels.items.map(({ channelId }) => channelId)).toEqual(['c2', 'c1'])
    const second = channels.items[0] ?? expect.fail()
    const consumers = (await registry.consumers.list(second, FIRST_PAGE)).items
    expect(consumers.map(({ consumerId }) => consumerId)).toEqual(['k2', 'k1', 'k0'])
    expect(consumers[0]).toEqual(await registry.consumers.get(second, 'k2'))
    expect(second).toEqual(await registry.channels.get('c2'))
  })

  it('refuse both directions at once', async () => {
    const { first, last } = await producers()
    const both = { next: last, previous: first }
    expect(await refusalOf(registry.producers.list(both))).toBe('both_cursors')
    expect(await refusalOf(registry.channels.list(both))).toBe('both_cursors')
    expect(await refusalOf(registry.consumers.list(channel, both))).toBe('both_cursors')
    expect(await refusalOf(registry.messages.list(channel, [101], both))).toBe('both_cursors')
    expect(await refusalOf(registry.messages.listScheduled(channel, 7, both))).toBe('both_cursors')
  })

  it('have pages of the size that clients know', () => {
    expect(PAGE_SIZE).toBe(25)
  })
})
