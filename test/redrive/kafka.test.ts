/**
 * Redrives of letters that leave over a network: what is sent and what is counted are two transactions, and between them a server may
 * end, a record may come back, and nobody may know. The store is real; the broker says what it is told to.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { RedriveDetail } from '../../src/redrive/redrive.ts'
import { KAFKA } from '../../src/sources/kafka/event.ts'
import type { StoredEvent } from '../../src/sources/kafka/stored-event.ts'
import type { Database } from '../../src/store/database.ts'
import { AWAY, Desk, DOUBT, TOO_LARGE } from '../world/kafka/return.ts'
import { reused } from '../world/reused-store.ts'
import { stores } from '../world/stores.ts'
import { SourceDesk } from './source-desk.ts'

/** After so long another server is at it. */
const TAKE_UP_US = 4_500_000n

describe.each(stores)('a redrive of letters of Kafka on $name', (kind) => {
  const store = reused(kind)
  let desk: Desk
  let server: SourceDesk
  const open = (db: Database = desk.db): SourceDesk => new SourceDesk(db, desk.clock, desk.source)
  beforeAll(async () => {
    desk = await Desk.open(store)
  })
  afterAll(() => desk?.close())
  beforeEach(() => {
    server = open()
  })
  afterEach(async () => {
    await server.stop()
    await desk.expectVerified()
  })

  /** The letters of a service. */
  const lettersOf = (service: string) => ({ originalQueue: `${service}/orders` })

  /** What was sent last for a service comes back dead. */
  const comesBack = (service: string, key: string): Promise<StoredEvent> => {
    const originalEventId = desk.sentIds(service).at(-1)
    if (originalEventId === undefined) throw new Error('nothing was sent')
    return desk.deadOf(service, { originalEventId, key })
  }

  const byHand = ({ rowKey }: StoredEvent) =>
    desk.letters.retry({ engine: KAFKA, rowKey }, { edit: null, notes: null, actor: 'bob' })

  it('sends them in their order, and history says which redrive did', async () => {
    const service = desk.service()
    const [first] = await desk.deadOnes(service, 3)
    const done = await server.run(lettersOf(service))
    expect(done).toMatchObject({ state: 'done', counts: { planned: 3, sent: 3, unconfirmed: 3 } })
    expect(desk.sentKeys(service)).toEqual(['k0', 'k1', 'k2'])
    const rows = (await desk.history()).filter(({ letterId }) => letterId === first?.letterId)
    expect(rows.at(-1)).toMatchObject({ operation: 'kafka.published', output: { redrive: done.id } })
  })

  it('counts a letter once that came back, was sent by hand and came back again', async () => {
    const service = desk.service()
    const [event] = await desk.deadOnes(service, 1)
    if (event === undefined) throw new Error('no event')
    const done = await server.run(lettersOf(service))
    await comesBack(service, 'k0')
    expect(await server.counts(done)).toMatchObject({ sent: 1, returned: 1, unconfirmed: 0 })
    await byHand(event)
    await comesBack(service, 'k0')
    expect(await server.counts(done)).toMatchObject({ sent: 1, returned: 1, confirmed: 0, unconfirmed: 0 })
    const { items } = await server.redrives.members(done.id, { limit: 10, token: null, outcome: null })
    expect(items).toMatchObject([{ outcome: 'superseded' }])
  })

  it('pauses when the broker is away, and goes on when it is resumed', async () => {
    const service = desk.service()
    await desk.deadOnes(service, 3)
    desk.publisher.next(desk.publisher.success(), AWAY)
    const paused = await server.run(lettersOf(service))
    expect(paused).toMatchObject({ state: 'paused', counts: { sent: 1, failed: 0, remaining: 2 } })
    expect(paused.note).toContain('no broker answers')
    await desk.expectVerified()
    expect(await server.resume(paused)).toMatchObject({ state: 'done', counts: { sent: 3 } })
  })

  it('leaves out what is refused, and what must not go before it', async () => {
    const service = desk.service()
    await desk.deadOnes(service, 3, { key: 'same' })
    desk.publisher.next(TOO_LARGE)
    const done = await server.run(lettersOf(service))
    expect(done.counts).toMatchObject({ sent: 0, failed: 1, skipped: 2 })
    expect(done.exceptions).toEqual([
      { outcome: 'skipped', reason: 'order_blocked', letters: 2 },
      { outcome: 'failed', reason: 'send_refused', letters: 1 },
    ])
  })

  it('takes a letter for failed when nobody knows whether it arrived', async () => {
    const service = desk.service()
    await desk.deadOnes(service, 2)
    desk.publisher.next(DOUBT)
    const done = await server.run(lettersOf(service))
    expect(done.counts).toMatchObject({ sent: 1, failed: 1 })
    const [id] = desk.sentIds(service)
    // It had arrived; but the redrive is not asked any more.
    await desk.deadOf(service, { ...(id === undefined ? {} : { originalEventId: id }), key: 'k0' })
    expect(await server.counts(done)).toMatchObject({ sent: 1, failed: 1, returned: 0, unconfirmed: 1 })
  })

  it('takes a letter for sent that came back before anybody knew that it had arrived', async () => {
    const service = desk.service()
    await desk.deadOnes(service, 1)
    desk.publisher.during(async () => {
      await comesBack(service, 'k0')
      return DOUBT
    })
    const done = await server.run(lettersOf(service))
    expect(done.counts).toMatchObject({ sent: 1, failed: 0, returned: 1, unconfirmed: 0 })
  })

  it('counts a letter that is under way when it is cancelled', async () => {
    const service = desk.service()
    await desk.deadOnes(service, 2)
    const flight = desk.publisher.hold()
    const { id } = await server.plan(lettersOf(service))
    await server.redrives.start(id, 'nell')
    await flight.begun
    await server.redrives.cancel(id, 'nell', null)
    flight.release()
    await expect.poll(() => server.counts({ id })).toMatchObject({ sent: 1, remaining: 1 })
    expect(desk.sentKeys(service)).toEqual(['k0'])
  })

  it('discards them, and takes them back', async () => {
    const service = desk.service()
    const [event] = await desk.deadOnes(service, 3)
    if (event === undefined) throw new Error('no event')
    expect(await server.run(lettersOf(service), 'discard')).toMatchObject({
      state: 'done',
      counts: { sent: 3, confirmed: 3 },
    })
    expect(await desk.standing(event)).toMatchObject({ state: 'discarded', status: 'Resolved' })
    expect(await server.run(lettersOf(service), 'restore')).toMatchObject({
      state: 'done',
      counts: { sent: 3 },
    })
    expect(await desk.standing(event)).toMatchObject({ state: 'pending', status: 'Pending' })
    expect(desk.sentKeys(service)).toEqual([])
  })

  describe('whose server ends between sending and counting', () => {
    /** Starts a redrive of one letter on a server that sends it, and is never heard of again. */
    const cutOff = async (service: string): Promise<RedriveDetail> => {
      const reached = Promise.withResolvers<void>()
      const first = open(withoutCount(desk.db, () => reached.resolve()))
      const plan = await first.plan(lettersOf(service))
      await first.redrives.start(plan.id, 'nell')
      await reached.promise
      return plan
    }
    /** Another server takes it up. */
    const takenUp = async (plan: RedriveDetail): Promise<RedriveDetail> => {
      await server.redrives.settle()
      desk.clock.advance(TAKE_UP_US)
      await server.redrives.settle()
      return server.redrives.read(plan.id)
    }

    it('is not sent twice by the next', async () => {
      const service = desk.service()
      await desk.deadOnes(service, 1)
      const plan = await cutOff(service)
      await desk.expectVerified()
      expect(await takenUp(plan)).toMatchObject({
        state: 'done',
        resumed: 1,
        counts: { sent: 1, unconfirmed: 1 },
      })
      expect(desk.sentKeys(service)).toEqual(['k0'])
    })

    it('counts as sent also when it came back meanwhile', async () => {
      const service = desk.service()
      await desk.deadOnes(service, 1)
      const plan = await cutOff(service)
      await comesBack(service, 'k0')
      await desk.expectVerified()
      expect((await takenUp(plan)).counts).toMatchObject({ sent: 1, skipped: 0, returned: 1, unconfirmed: 0 })
    })

    it('and also when it was sent by hand since', async () => {
      const service = desk.service()
      const [event] = await desk.deadOnes(service, 1)
      if (event === undefined) throw new Error('no event')
      const plan = await cutOff(service)
      await comesBack(service, 'k0')
      await byHand(event)
      expect((await takenUp(plan)).counts).toMatchObject({ sent: 1, skipped: 0, returned: 1, unconfirmed: 0 })
    })
  })
})

/** A store on which a server comes as far as sending: then nothing that it asks is answered any more. */
function withoutCount(db: Database, reached: () => void): Database {
  let isCutOff = false
  return new Proxy(db, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (verb: unknown, ...rest: readonly unknown[]) => {
        if (verb === 'redrive.sent') {
          isCutOff = true
          reached()
        }
        return isCutOff ? new Promise(() => {}) : value.apply(target, [verb, ...rest])
      }
    },
  })
}
