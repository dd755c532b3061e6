import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { refusalOf, WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import type { Instant } from '../../../core/clock.ts'
import { formatHttpDate } from '../../../core/timestamp.ts'
import type { Channel } from '../webhook.ts'

interface Resource {
  readonly name: string
  readonly token: string
  readonly createdAt: Instant
  readonly updatedAt: Instant
}

/** What producers, channels and consumers have in common. */
interface Kind {
  get(id: string): Promise<Resource | null>
  put(id: string, name: string | null, token: string | null, condition: string | null): Promise<Resource>
}

const TOKEN = /^[A-Za-z0-9]{12}$/

describe.each(stores)('on $name', (store) => {
  let registry: WebhookWorld
  let channel: Channel
  beforeAll(async () => {
    registry = await WebhookWorld.open(store)
    // Conditions know whole seconds only.
    registry.pass(0.9)
    channel = await registry.channel('the-channel')
  })
  afterAll(() => registry.close())

  const kinds: Readonly<Record<string, Kind>> = {
    producer: {
      get: (id) => registry.producers.get(id),
      put: (id, name, token, condition) => registry.producers.put(id, { name, token }, condition),
    },
    channel: {
      get: (id) => registry.channels.get(id),
      put: (id, name, token, condition) => registry.channels.put(id, { name, token }, condition),
    },
    consumer: {
      get: (id) => registry.consumers.get(channel, id),
      put: (id, name, token, condition) =>
        registry.consumers.put(
          channel,
          id,
          { name, token, callbackUrl: 'http://host/hook', type: null },
          condition,
        ),
    },
  }

  describe.each(Object.entries(kinds))('a %s', (_, kind) => {
    const dateOf = ({ updatedAt }: Resource) => formatHttpDate(updatedAt)

    it('is created without a condition and read back as it is', async () => {
      expect(await kind.get('new')).toBeNull()
      const created = await kind.put('new', 'A name', 'a token', null)
      expect(created).toMatchObject({ name: 'A name', token: 'a token', updatedAt: registry.clock.now() })
      expect(await kind.get('new')).toEqual(created)
    })

    it('is created also with a condition', async () => {
      const created = await kind.put('conditional', null, null, 'Sun, 15 Nov 2026 01:08:28 GMT')
      expect(await kind.get('conditional')).toEqual(created)
    })

    it('is called by its id and gets a random token, anew with every put', async () => {
      const created = await kind.put('bare', null, '', null)
      expect(created).toMatchObject({ name: 'bare', token: expect.stringMatching(TOKEN) })
      const again = await kind.put('bare', '', null, dateOf(created))
      expect(again).toMatchObject({ name: 'bare', token: expect.stringMatching(TOKEN) })
      expect(again.token).not.toBe(created.token)
    })

    it('is changed only by those who know when it was last modified', async () => {
      const created = await kind.put('guarded', 'one', 't', null)
      expect(await refusalOf(kind.put('guarded', 'two', 't', null))).toBe('condition_missing')
      expect(await refusalOf(kind.put('guarded', 'two', 't', ''))).toBe('condition_missing')
      for (const wrong of [
        'Sun, 15 Nov 2026 01:08:28 GMT',
        `${dateOf(created)} `,
        dateOf(created).toLowerCase(),
      ])
        expect(await refusalOf(kind.put('guarded', 'two', 't', wrong))).toBe('condition_failed')
      expect(await kind.get('guarded')).toEqual(created)
      const changed = await kind.put('guarded', 'two', 't', dateOf(created))
      expect(changed).toMatchObject({ name: 'two', createdAt: created.createdAt })
      expect(await kind.get('guarded')).toEqual(changed)
    })

    it('is modified a second later at least, so that the condition before does not hold any more', async () => {
      const created = await kind.put('seconds', 'one', 't', null)
      const changed = await kind.put('seconds', 'two', 't', dateOf(created))
      expect(changed.updatedAt - created.updatedAt).toBe(1_000_000n)
      expect(await refusalOf(kind.put('seconds', 'three', 't', dateOf(created)))).toBe('condition_failed')
      registry.clock.advance(5_000_000n)
      const later = await kind.put('seconds', 'three', 't', dateOf(changed))
      expect(later.updatedAt).toBe(registry.clock.now())
    })

    it('stays as it was when a put changes nothing', async () => {
      const created = await kind.put('same', 'one', 't', null)
      registry.clock.advance(5_000_000n)
      expect(await kind.put('same', 'one', 't', dateOf(created))).toEqual(created)
      expect(await kind.get('same')).toEqual(created)
    })

    it('is changed once when several change it under the same condition', async () => {
      const created = await kind.put('contended', 'zero', 't', null)
      const puts = Array.from({ length: 5 }, (_, i) =>
        refusalOf(kind.put('contended', `name-${i}`, 't', dateOf(created))),
      )
      expect((await Promise.all(puts)).sort()).toEqual([...Array(4).fill('condition_failed'), 'done'])
      expect((await kind.get('contended'))?.updatedAt).toBe(created.updatedAt + 1_000_000n)
    })

    it('is created once when several create it at the same time', async () => {
      const puts = Array.from({ length: 5 }, (_, i) => refusalOf(kind.put('raced', `name-${i}`, 't', null)))
      expect((await Promise.all(puts)).sort()).toEqual([...Array(4).fill('condition_missing'), 'done'])
    })

    it('is found by exactly its id', async () => {
      const ids = ['c_', 'cx', '%', 'CX', 'a b', 'é', 'e\u0301', 'a/b?c#d', '\u{1f4ee}', "'; --", ' ', 'null']
      for (const id of ids) await kind.put(id, null, 't', null)
      for (const id of ids) expect((await kind.get(id))?.name).toBe(id)
      for (const id of ['c%', 'cX', 'É', 'a  b', '  ', '']) expect(await kind.get(id)).toBeNull()
    })

    it('has no control characters in its id and its name', async () => {
      for (const text of ['a\nb', '\u001b[2J', 'a\u007f', 'a\u0085b']) {
        expect(await refusalOf(kind.put(text, null, 't', null))).toBe('name_invalid')
        expect(await refusalOf(kind.put('controlled', text, 't', null))).toBe('name_invalid')
      }
      const created = await kind.put('controlled', 'n', 't', null)
      expect(await refusalOf(kind.put('controlled', 'a\u0007', 't', dateOf(created)))).toBe('name_invalid')
    })

    it('has texts of up to 255 characters and no U+0000; no other is found', async () => {
      const longest = '\u{1f4ee}'.repeat(255)
      expect((await kind.put(longest, longest, longest, null)).name).toBe(longest)
      expect((await kind.get(longest))?.token).toBe(longest)
      const wrong = [`${longest}x`, 'a\0b', 'a\ud800']
      for (const text of wrong) {
        expect(await refusalOf(kind.put(text, null, 't', null))).toBe('text_invalid')
        expect(await refusalOf(kind.put('unknown', text, 't', null))).toBe('text_invalid')
        expect(await refusalOf(kind.put('unknown', 'n', text, null))).toBe('text_invalid')
        expect(await kind.get(text)).toBeNull()
      }
      const created = await kind.put('texts', 'n', 't', null)
      expect(await refusalOf(kind.put('texts', 'a\0b', 't', null))).toBe('condition_missing')
      expect(await refusalOf(kind.put('texts', 'a\0b', 't', dateOf(created)))).toBe('text_invalid')
    })
  })

  it('gives no number twice', async () => {
    const made = [
      await registry.channel('numbered'),
      await registry.consumer(channel, { consumerId: 'numbered' }),
      await registry.channel('numbered too'),
      await registry.consumer(channel, { consumerId: 'numbered too' }),
    ]
    expect(new Set(made.map(({ number }) => number)).size).toBe(4)
  })
})
