/** Several servers on one store tell the same, whichever of them did what: also new ones, and with clocks that differ. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { instant } from '../../../src/core/clock.ts'
import { silentLog } from '../../../src/core/log.ts'
import { NODE_SOURCES } from '../../../src/core/system-clock.ts'
import { TestClock } from '../../../src/core/test-clock.ts'
import { formatHttpDate } from '../../../src/core/timestamp.ts'
import { letterCounter } from '../../../src/letters/numbers/counts.ts'
import { foldCounts } from '../../../src/store/fold.ts'
import { StoreClock } from '../../../src/store/store-clock.ts'
import { type ServerHere, startServer } from '../../world/server.ts'
import { freshPostgres, stores } from '../../world/stores.ts'
import { WebhookClient } from '../../world/webhooks/client.ts'
import { CountedOffice, SUDDEN } from '../../world/webhooks/office.ts'
import { deadStatus, type Told, told } from '../../world/webhooks/told.ts'

const HOUR_MS = 3_600_000
const HOUR_US = 3_600_000_000n

describe.each(stores)('two servers on $name', (store) => {
  let house: CountedOffice
  const servers: ServerHere[] = []
  const clients: WebhookClient[] = []
  const serve = async (): Promise<void> => {
    const server = await startServer({ store: house.place.url, clock: house.clock, webhooks: SUDDEN })
    servers.push(server)
    clients.push(new WebhookClient(server.url))
  }
  beforeAll(async () => {
    house = await CountedOffice.open(store)
    await serve()
    await serve()
  })
  afterAll(async () => {
    for (const client of clients) client.close()
    for (const server of servers) await server.stop()
    await house?.close()
  })

  /** All of them say this, in both ways. */
  const expectTold = async (dead: Told) => {
    for (const client of clients) expect(await told(client)).toMatchObject({ status: dead, gauge: dead })
  }
  const webhooksOf = (i: number) => servers[i]?.office.webhooks ?? expect.fail(`there is no server ${i}`)

  // H17
  it('tell the same dead jobs, right after one of them changed something', async () => {
    const channel = await house.channel('c17')
    const consumer = await house.consumer(channel, 'k')
    const [first, second, third] = [
      await house.dead(channel, consumer, webhooksOf(0)),
      await house.dead(channel, consumer, webhooksOf(1)),
      await house.dead(channel, consumer, webhooksOf(1)),
    ]
    await expectTold({ 'c17/k': 3 })
    await webhooksOf(0).jobs.requeue(consumer, second)
    await expectTold({ 'c17/k': 2 })
    await webhooksOf(1).jobs.erase(consumer, first)
    await expectTold({ 'c17/k': 1 })
    await house.fold()
    await webhooksOf(0).jobs.move(consumer, third, 'INFLIGHT', 0)
    await expectTold({ 'c17/k': 0 })
    await webhooksOf(1).jobs.move(consumer, third, 'DEAD', 0)
    await webhooksOf(0).bulk.purge(consumer, 'the test')
    await expectTold({ 'c17/k': 0 })
  })

  // H18
  it('tell what is dead from their first scrape on', async () => {
    const channel = await house.channel('c18')
    const consumer = await house.consumer(channel, 'k')
    for (let i = 0; i < 2; i++) await house.dead(channel, consumer)
    await serve()
    const fresh = clients.at(-1) ?? expect.fail('there is no new server')
    expect((await told(fresh)).gauge).toMatchObject({ 'c18/k': 2 })
    await expectTold({ 'c18/k': 2 })
  })

  // H20
  it('call consumers and channels as they are called now', async () => {
    const channel = await house.channel('c20')
    const consumer = await house.consumer(channel, 'k')
    await house.dead(channel, consumer)
    const names = async (client: WebhookClient) =>
      (await deadStatus(client)).consumers
        .filter(({ channelId }) => channelId === 'c20')
        .map(({ channelName, consumerName }) => [channelName, consumerName])
    for (const client of clients) expect(await names(client)).toEqual([['c20', 'k']])
    const request = { name: 'Payments', token: 'ktok', callbackUrl: consumer.callbackUrl, type: 'pull' }
    await webhooksOf(0).consumers.put(channel, 'k', request, formatHttpDate(consumer.updatedAt))
    const renamed = { name: 'Orders', token: 'ctok' }
    await webhooksOf(1).channels.put('c20', renamed, formatHttpDate(channel.updatedAt))
    for (const client of clients) expect(await names(client)).toEqual([['Orders', 'Payments']])
  })

  // H21
  it('say nothing any more about a consumer that is deleted, nor when another gets its id', async () => {
    const channel = await house.channel('c21')
    const consumer = await house.consumer(channel, 'k')
    const job = await house.dead(channel, consumer)
    await expectTold({ 'c21/k': 1 })
    await webhooksOf(1).jobs.erase(consumer, job)
    await expectTold({ 'c21/k': 0 })
    await webhooksOf(0).consumers.delete(channel, 'k', formatHttpDate(consumer.updatedAt))
    const expectSilence = async () => {
      for (const client of clients) {
        const { status, gauge } = await told(client)
        expect([status, gauge].map((all) => Object.keys(all).includes('c21/k'))).toEqual([false, false])
      }
    }
    await expectSilence()
    await house.pass(1_000_000n)
    const another = await house.consumer(channel, 'k')
    await expectSilence()
    await house.dead(channel, another)
    await expectTold({ 'c21/k': 1 })
  })

  it('leave nothing behind that a check would find', () => house.expectVerified())
})

// H14. On SQLite all servers share a machine, and so a clock.
describe('servers on postgres whose clocks are hours apart', () => {
  let house: CountedOffice
  beforeAll(async () => {
    // By a clock that is an hour ahead every claim is over: nobody looks for those here.
    const webhooks = { ...SUDDEN, recovery: { enabled: false } }
    house = await CountedOffice.open({ name: 'postgres', fresh: freshPostgres }, { webhooks })
  })
  afterAll(() => house?.close())

  it('count the dead jobs of all', async () => {
    const early = new TestClock()
    early.freeze(instant(house.clock.now() - HOUR_US))
    const late = new TestClock()
    late.freeze(instant(house.clock.now() + HOUR_US))
    const channel = await house.channel('c')
    const consumer = await house.consumer(channel, 'k')
    const offices = [await house.another(early), await house.another(late)]
    const dead = []
    for (const { webhooks } of [...offices, ...offices.toReversed()]) {
      dead.push(await house.dead(channel, consumer, webhooks))
      await house.expectDead(channel, consumer, dead.length)
    }
    for (const [i, { webhooks }] of [...offices, ...offices].entries()) {
      await webhooks.jobs.requeue(consumer, dead[i] ?? '')
      await house.expectDead(channel, consumer, dead.length - i - 1)
    }
  })

  it('go by the time of the database: none takes away the lock of another before its lease is over', async () => {
    const clocks = [-HOUR_MS, HOUR_MS].map((skewMs) => {
      const machine = { ...NODE_SOURCES, wallMs: () => NODE_SOURCES.wallMs() + skewMs }
      return new StoreClock(house.db, silentLog, machine)
    })
    for (const clock of clocks) await clock.follow()
    const [early, late] = clocks
    const fold = { ...letterCounter, lock: 'an hour apart' }
    const foldBy = (clock: StoreClock | undefined, owner: string) =>
      foldCounts(house.db, fold, { clock: clock?.clock ?? house.clock, owner })
    expect(await foldBy(early, 'early')).not.toBeNull()
    expect(await foldBy(late, 'late')).toBeNull()
    expect(await foldBy(early, 'early')).not.toBeNull()
  })
})
