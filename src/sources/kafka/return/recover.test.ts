import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Desk, refusalId } from '../../../../test/world/kafka/return.ts'
import { stores } from '../../../../test/world/stores.ts'
import { lockClaim } from './claim.ts'
import type { ReturnPath } from './return-path.ts'

describe.each(stores)('after a crash on $name', (kind) => {
  let desk: Desk
  beforeAll(async () => {
    desk = await Desk.open(kind)
  })
  afterAll(() => desk?.close())
  afterEach(async () => {
    desk.decide = () => ({ action: 'publish', change: {} })
    desk.told.length = 0
    await desk.expectVerified()
  })

  /** A server ends while the processor runs. */
  const diesClaiming = async (path: ReturnPath) => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    const begun = Promise.withResolvers<void>()
    desk.decide = () => {
      begun.resolve()
      return new Promise(() => {})
    }
    desk.process(service, {}, path).catch(() => {})
    await begun.promise
    desk.decide = () => ({ action: 'publish', change: {} })
    return { service, event }
  }

  /** A server ends while the broker has the record, or does not have it. */
  const diesPublishing = async (path: ReturnPath) => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    await desk.publisher.die(() => desk.process(service, {}, path))
    return { service, event }
  }

  const impatient = (instance?: string) =>
    desk.anotherPath({ settings: { busyWaitMs: 60 }, ...(instance === undefined ? {} : { instance }) })

  it('what was claimed is pending again when its lease is over, and not before', async () => {
    const { service, event } = await diesClaiming(desk.crashing())
    const path = impatient()
    expect(await refusalId(desk.process(service, {}, path))).toBe('dlqBusyError')
    expect(await desk.standing(event)).toMatchObject({ state: 'claimed' })
    desk.passLease()
    await desk.process(service, {}, path)
    expect(await desk.standing(event)).toMatchObject({ state: 'published' })
    expect(await desk.historyOf(event)).toEqual(['published by nell'])
  })

  it('what was being published is uncertain when its lease is over, and not before', async () => {
    const { service, event } = await diesPublishing(desk.crashing())
    const path = impatient()
    expect(await refusalId(desk.process(service, {}, path))).toBe('dlqBusyError')
    desk.passLease()
    expect(await refusalId(desk.process(service, {}, path))).toBe('uncertainPublishError')
    expect(await desk.historyOf(event)).toEqual(['uncertain by system'])
    expect(desk.told).toEqual([`${service} uncertain`])
    await desk.process(service, { resend: true }, path)
    expect(desk.sentIds(service)).toHaveLength(2)
    expect(new Set(desk.sentIds(service)).size).toBe(1)
    expect(await desk.standing(event)).toMatchObject({ state: 'published', status: 'Resolved' })
  })

  it('who held it is on file', async () => {
    const { event } = await diesPublishing(desk.crashing({ instance: 'server-9' }))
    const hold = await desk.db.transaction('test', (tx) => lockClaim(tx, event.letterId))
    expect(hold).toMatchObject({ claimedBy: 'nell on server-9', state: 2 })
    desk.passLease()
    expect(await desk.discard(event.dlqId)).toBe(true)
  })

  it('a lease is longer than a processor and a publish may take together', async () => {
    const { event } = await diesPublishing(desk.crashing())
    const path = desk.anotherPath()
    desk.clock.advance(35_000_000n)
    await path.start()
    if (kind.name === 'postgres') expect(await desk.standing(event)).toMatchObject({ state: 'publishing' })
    desk.passLease()
    await expect.poll(() => desk.standing(event)).toMatchObject({ state: 'uncertain' })
    await path.stop()
  })

  it('a server that starts lets go of what it held itself, at once', async () => {
    const before = desk.crashing({ instance: 'server-1' })
    const claimed = await diesClaiming(before)
    const publishing = await diesPublishing(before)
    const path = desk.anotherPath({ instance: 'server-1' })
    await path.start()
    expect(await desk.standing(claimed.event)).toMatchObject({ state: 'pending' })
    expect(await desk.standing(publishing.event)).toMatchObject({ state: 'uncertain' })
    await desk.process(claimed.service, {}, path)
    await desk.process(publishing.service, { resend: true }, path)
    await path.stop()
  })

  // A file has one server at a time.
  it.runIf(kind.name === 'postgres')('a server that starts leaves alone what others hold', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    const flight = desk.publisher.hold()
    const call = desk.process(service)
    await flight.begun
    const path = desk.anotherPath()
    await path.start()
    expect(await desk.standing(event)).toMatchObject({ state: 'publishing' })
    flight.release()
    await call
    expect(await desk.standing(event)).toMatchObject({ state: 'published' })
    await path.stop()
  })

  it('a server that starts leaves alone what it has begun to do since', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    const path = desk.anotherPath({ instance: 'server-2' })
    const flight = desk.publisher.hold()
    const call = desk.process(service, {}, path)
    await flight.begun
    await path.start()
    expect(await desk.standing(event)).toMatchObject({ state: 'publishing' })
    flight.release()
    await call
    await path.stop()
  })

  it('somebody looks for what was left behind, without being asked', async () => {
    const path = desk.anotherPath()
    await path.start()
    const claimed = await diesClaiming(desk.crashing())
    const publishing = await diesPublishing(desk.crashing())
    desk.clock.advance(6_000_000n)
    desk.passLease()
    const states = async () => [
      (await desk.standing(claimed.event)).state,
      (await desk.standing(publishing.event)).state,
    ]
    // The round that rang may have looked before; the next one is due.
    await expect
      .poll(async () => {
        desk.clock.advance(6_000_000n)
        return states()
      })
      .toEqual(['pending', 'uncertain'])
    await path.stop()
  })

  it('somebody looks for what this server holds for too long, too', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    const path = desk.anotherPath()
    await path.start()
    const flight = desk.publisher.hold()
    const call = desk.process(service, {}, path)
    await flight.begun
    desk.passLease()
    await expect.poll(() => desk.standing(event)).toMatchObject({ state: 'uncertain' })
    flight.release()
    await call
    expect(await desk.standing(event)).toMatchObject({ state: 'published' })
    await path.stop()
  })

  it('goes on looking after the store was away', async () => {
    const { event } = await diesPublishing(desk.crashing())
    const path = desk.anotherPath()
    desk.passLease()
    await desk.place.refuseWrites()
    await path.start()
    await desk.place.acceptWrites()
    expect(await desk.standing(event)).toMatchObject({ state: 'publishing' })
    desk.clock.advance(6_000_000n)
    await expect.poll(() => desk.standing(event)).toMatchObject({ state: 'uncertain' })
    await path.stop()
  })

  it('who comes back too late and knows that it arrived is believed', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    const flight = desk.publisher.hold()
    const call = desk.process(service)
    await flight.begun
    desk.passLease()
    expect(await refusalId(desk.process(service, {}, impatient()))).toBe('uncertainPublishError')
    flight.release()
    expect(await call).toMatchObject({ outcome: 'published' })
    expect(await desk.standing(event)).toMatchObject({ state: 'published', status: 'Resolved' })
    expect(await desk.historyOf(event)).toEqual(['uncertain by system', 'published by nell'])
  })

  it('who comes back too late changes nothing when others have it', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    const late = desk.publisher.hold()
    const call = desk.process(service)
    await late.begun
    desk.passLease()
    const path = impatient()
    const again = desk.publisher.hold()
    const resend = desk.process(service, { resend: true }, path)
    await again.begun
    late.release({ outcome: 'failed', why: 'unavailable', message: 'no' })
    expect(await refusalId(call)).toBe('kafkaUnavailableError')
    expect(await desk.standing(event)).toMatchObject({ state: 'publishing' })
    again.release()
    await resend
    expect(await desk.standing(event)).toMatchObject({ state: 'published' })
    expect(new Set(desk.sentIds(service)).size).toBe(1)
  })

  it('who lost its claim does not send', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    const slow = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    desk.decide = async () => {
      begun.resolve()
      await slow.promise
      return { action: 'publish', change: {} }
    }
    const call = desk.process(service)
    await begun.promise
    desk.passLease()
    desk.decide = () => ({ action: 'publish', change: {} })
    await desk.process(service, {}, impatient())
    slow.resolve()
    expect(await refusalId(call)).toBe('emptyDLQError')
    expect(desk.sentIds(service)).toHaveLength(1)
    expect(await desk.standing(event)).toMatchObject({ state: 'published' })
  })

  it('what was left behind can be discarded', async () => {
    const claimed = await diesClaiming(desk.crashing())
    const publishing = await diesPublishing(desk.crashing())
    desk.passLease()
    expect(await desk.discard(claimed.event.dlqId)).toBe(true)
    await desk.discardNext(publishing.service)
    expect(await desk.letter(claimed.event)).toMatchObject({ notes: 'Discarded' })
    expect(await desk.letter(publishing.event)).toMatchObject({ notes: 'assumed published' })
  })
})
