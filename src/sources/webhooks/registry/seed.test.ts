import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import { formatHttpDate } from '../../../core/timestamp.ts'
import { Xids } from '../../../core/xid.ts'
import { sql } from '../../../store/database.ts'
import type { Seed } from '../settings.ts'
import type { Channel } from '../webhook.ts'
import { Seeding } from './seed.ts'

const SEED: Seed = {
  channels: [{ id: 'c1', name: 'Chan One', token: 'ctok' }, { id: 'c2' }],
  producers: [{ id: 'p1', name: 'Prod One', token: 'ptok' }, { id: 'p2' }],
  consumers: [
    { id: 'k1', channel: 'c1', name: 'Con One', token: 'ktok', callbackUrl: 'http://host/1', type: 'pull' },
    { id: 'k1', channel: 'c2', callbackUrl: 'http://user:secret@host/2' },
  ],
}
const EMPTY: Seed = { channels: [], producers: [], consumers: [] }

const CLEAR = ['producers', 'channels', 'consumers', 'seed'].map((table) =>
  sql(`test.clear ${table}`, `DELETE FROM bartleby.webhook_${table}`),
)

describe.each(stores)('a seed on $name', (store) => {
  let registry: WebhookWorld
  beforeAll(async () => {
    registry = await WebhookWorld.open(store)
    // Conditions know whole seconds only.
    registry.pass(0.9)
  })
  afterAll(() => registry.close())
  beforeEach(async () => {
    for (const statement of CLEAR) await registry.write(statement)
  })
  const seeding = (seed: Seed) =>
    new Seeding({ db: registry.db, clock: registry.clock, xids: new Xids(registry.clock) }, seed)
  const apply = (seed: Seed) => seeding(seed).apply()
  const channel = async (id: string): Promise<Channel> =>
    (await registry.channels.get(id)) ?? expect.fail(`there is no channel ${id}`)
  const consumer = async (channelId: string, id: string) =>
    registry.consumers.get(await channel(channelId), id)

  it('is there after the first start, with ids for names and random tokens where it has none', async () => {
    await apply(SEED)
    expect(await registry.producers.get('p1')).toMatchObject({ name: 'Prod One', token: 'ptok' })
    expect(await registry.producers.get('p2')).toMatchObject({
      name: 'p2',
      token: expect.stringMatching(/^[A-Za-z0-9]{12}$/),
    })
    expect(await channel('c1')).toMatchObject({ name: 'Chan One', token: 'ctok' })
    expect(await consumer('c1', 'k1')).toMatchObject({ name: 'Con One', token: 'ktok', type: 'pull' })
    expect(await consumer('c2', 'k1')).toMatchObject({
      name: 'k1',
      callbackUrl: 'http://user:secret@host/2',
      type: 'push',
    })
  })

  it('is applied once: what the API changes survives the next start', async () => {
    await apply(SEED)
    const before = await channel('c1')
    const changed = await registry.channels.put(
      'c1',
      { name: 'Other', token: 'other' },
      formatHttpDate(before.updatedAt),
    )
    await apply({ consumers: SEED.consumers, producers: SEED.producers, channels: SEED.channels })
    await apply(EMPTY)
    await apply(SEED)
    expect(await channel('c1')).toEqual(changed)
  })

  it('is applied again when it is another: entries get the configured values, and keep tokens that are not', async () => {
    await apply(SEED)
    const [c1, c2, k1] = [await channel('c1'), await channel('c2'), await consumer('c1', 'k1')]
    await registry.channels.put('c1', { name: 'Other', token: 'other' }, formatHttpDate(c1.updatedAt))
    await apply({ ...SEED, producers: [{ id: 'p1', name: 'Renamed', token: 'ptok' }] })
    expect(await registry.producers.get('p1')).toMatchObject({ name: 'Renamed', token: 'ptok' })
    expect(await registry.producers.get('p2')).not.toBeNull()
    expect(await channel('c1')).toMatchObject({
      id: c1.id,
      number: c1.number,
      name: 'Chan One',
      token: 'ctok',
    })
    expect((await channel('c1')).updatedAt).toBe(c1.updatedAt + 2_000_000n)
    expect(await channel('c2')).toEqual(c2)
    expect(await consumer('c1', 'k1')).toEqual(k1)
  })

  it('is applied by one of several servers that start at the same moment', async () => {
    await Promise.all(Array.from({ length: 5 }, () => apply(SEED)))
    expect((await registry.channels.list({ next: null, previous: null })).items).toHaveLength(2)
    expect((await registry.producers.list({ next: null, previous: null })).items).toHaveLength(2)
  })

  it('is applied beside servers that create the same', async () => {
    const put = (id: string) =>
      registry.producers.put(id, { name: 'from the API', token: 't' }, null).catch(() => null)
    await Promise.all([put('p1'), apply(SEED), put('p2'), apply(SEED), put('p1')])
    expect(await registry.producers.get('p1')).not.toBeNull()
  })

  it('leaves nothing behind when it names a channel that does not exist, and is tried at the next start', async () => {
    const wrong = { ...SEED, consumers: [{ id: 'k9', channel: 'c9', callbackUrl: 'http://host/' }] }
    for (let starts = 0; starts < 2; starts++)
      await expect(apply(wrong)).rejects.toThrow(
        "the seed has a consumer 'k9' on the channel 'c9', which does not exist",
      )
    expect(await registry.channels.get('c1')).toBeNull()
    await registry.channel('c9')
    await apply(wrong)
    expect(await consumer('c9', 'k9')).not.toBeNull()
  })

  it('is refused when it has a consumer that cannot be called', async () => {
    const wrong = { ...SEED, consumers: [{ id: 'k9', channel: 'c1', callbackUrl: 'user:secret@host' }] }
    await expect(apply(wrong)).rejects.toThrow(
      "the seed has a consumer 'k9' whose callbackUrl is no absolute http or https URL",
    )
    expect(await registry.channels.get('c1')).toBeNull()
  })

  it('is shown without tokens and credentials', async () => {
    const status = await seeding(SEED).status()
    expect(status).toEqual({
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      producers: [
        { id: 'p1', name: 'Prod One' },
        { id: 'p2', name: 'p2' },
      ],
      channels: [
        { id: 'c1', name: 'Chan One' },
        { id: 'c2', name: 'c2' },
      ],
      consumers: [
        { id: 'k1', name: 'Con One', channel: 'c1', callbackUrl: 'http://host/1', type: 'pull' },
        { id: 'k1', name: 'k1', channel: 'c2', callbackUrl: 'http://host/2', type: 'push' },
      ],
    })
  })

  it('has the hash of its canonical JSON', async () => {
    // echo -n '{"channels":[],"consumers":[],"producers":[]}' | sha256sum
    expect((await seeding(EMPTY).status()).hash).toBe(EMPTY_HASH)
    const turned = { producers: [], channels: [{ token: 't', id: 'c' }], consumers: [] }
    const straight = { channels: [{ id: 'c', token: 't' }], producers: [], consumers: [] }
    expect((await seeding(turned).status()).hash).toBe((await seeding(straight).status()).hash)
    expect((await seeding(EMPTY).status()).hash).not.toBe((await seeding(straight).status()).hash)
  })
})

const EMPTY_HASH = '0f36717d40a2715bb15f9bdff721cffcc5a7cb102f85371cee23fd3dc152dc31'
