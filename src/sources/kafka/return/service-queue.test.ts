import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { AWAY, Desk, refusal, refusalId } from '../../../../test/world/kafka/return.ts'
import { stores } from '../../../../test/world/stores.ts'
import type { StoredEvent } from '../stored-event.ts'
import { ServiceQueues } from './service-queue.ts'

describe.each(stores)('calls at the same time on $name', (kind) => {
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

  const keys = (count: number) => Array.from({ length: count }, (_, i) => `k${i}`)
  const counted = (values: readonly (string | null)[]) =>
    Object.fromEntries([...Map.groupBy(values, String)].map(([value, all]) => [value, all.length]))

  it('resolve one event each, in order: fifty on twenty', async () => {
    const service = desk.service()
    await desk.deadOnes(service, 20)
    const ends = await Promise.all(Array.from({ length: 50 }, () => refusalId(desk.process(service))))
    expect(desk.sentKeys(service)).toEqual(keys(20))
    // In the order in which they were made.
    expect(ends).toEqual([...Array(20).fill(null), ...Array(30).fill('emptyDLQError')])
  })

  it('of several servers resolve one event each, in order', async () => {
    const service = desk.service()
    await desk.deadOnes(service, 12)
    const servers =
      kind.name === 'sqlite'
        ? [desk.path, desk.anotherPath()]
        : [desk.path, desk.anotherPath({ db: desk.another() }), desk.anotherPath({ db: desk.another() })]
    let flying = 0
    let most = 0
    for (let i = 0; i < 12; i++) {
      desk.publisher.during(async () => {
        most = Math.max(most, ++flying)
        await pause(1)
        flying--
        return desk.publisher.success()
      })
    }
    const ends = await Promise.all(
      Array.from({ length: 18 }, (_, i) =>
        refusalId(desk.process(service, {}, servers[i % servers.length] ?? desk.path)),
      ),
    )
    expect(desk.sentKeys(service)).toEqual(keys(12))
    expect(counted(ends)).toEqual({ null: 12, emptyDLQError: 6 })
    expect(most).toBe(1)
  })

  it('on different services do not wait for each other', async () => {
    const [slow, quick] = [desk.service(), desk.service()]
    await desk.deadOf(slow)
    await desk.deadOf(quick)
    const flight = desk.publisher.hold()
    const call = desk.process(slow)
    await flight.begun
    await desk.process(quick)
    flight.release()
    await call
  })

  it('on different topics of one service do', async () => {
    const service = desk.service()
    await desk.deadOf(service, { originalTopic: 'a' })
    await desk.deadOf(service, { originalTopic: 'b' })
    const flight = desk.publisher.hold()
    const call = desk.process(service, { topic: 'a' })
    await flight.begun
    const other = desk.process(service, { topic: 'b' }, desk.anotherPath())
    await pause(150)
    expect(desk.sentKeys(service)).toHaveLength(1)
    flight.release()
    await Promise.all([call, other])
    expect(desk.sentKeys(service)).toHaveLength(2)
  })

  it('are refused when they get no turn in time, on the same server and on another', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    const settings = { busyWaitMs: 60 }
    const path = desk.anotherPath({ settings })
    const flight = desk.publisher.hold()
    const call = desk.process(service, {}, path)
    await flight.begun
    const busy = { id: 'dlqBusyError', status: 409, data: { service, dlq_id: event.dlqId } }
    const other = desk.anotherPath({ settings })
    expect(
      await Promise.all([
        refusal(desk.process(service, {}, path)),
        refusal(desk.process(service, {}, other)),
        refusal(desk.discardNext(service, null, path)),
        refusal(desk.discard(event.dlqId, other)),
      ]),
    ).toEqual([busy, busy, busy, busy])
    flight.release()
    await call
    expect(desk.sentKeys(service)).toHaveLength(1)
  })

  it('get the next event when the one before is refused or fails', async () => {
    const service = desk.service()
    await desk.deadOnes(service, 1)
    desk.publisher.next(AWAY, AWAY)
    const ends = await Promise.all([1, 2, 3, 4].map(() => refusalId(desk.process(service))))
    expect(ends).toEqual(['kafkaUnavailableError', 'kafkaUnavailableError', null, 'emptyDLQError'])
  })

  it('leave one winner of process and discard', async () => {
    const service = desk.service()
    const events = await desk.deadOnes(service, 8)
    const other = desk.anotherPath(kind.name === 'sqlite' ? {} : { db: desk.another() })
    const outcomes = await Promise.all(
      events.flatMap(({ dlqId }) => [
        refusalId(desk.process(service, { dlqId })),
        desk.discard(dlqId, other),
      ]),
    )
    const isResolved = async (event: StoredEvent) => (await desk.standing(event)).state
    const states = await Promise.all(events.map(isResolved))
    const sent = new Set(desk.sentKeys(service))
    expect(sent.size).toBe(desk.sentKeys(service).length)
    states.forEach((state, i) => {
      const [processed, discarded] = outcomes.slice(2 * i, 2 * i + 2)
      expect(state).toBe(sent.has(`k${i}`) ? 'published' : 'discarded')
      expect(discarded).toBe(state === 'discarded')
      expect(processed === null).toBe(state === 'published')
    })
  })

  it('discard by id only waits for its own event', async () => {
    const service = desk.service()
    const [first, second] = await desk.deadOnes(service, 2)
    if (first === undefined || second === undefined) throw new Error('no events')
    const flight = desk.publisher.hold()
    const call = desk.process(service)
    await flight.begun
    expect(await desk.discard(second.dlqId)).toBe(true)
    const waiting = desk.discard(first.dlqId)
    flight.release()
    await call
    // It was published while the other waited.
    expect(await waiting).toBe(false)
    expect(await desk.standing(first)).toMatchObject({ state: 'published' })
  })

  it('that wait when the server stops are refused, and those under way end', async () => {
    const service = desk.service()
    const [event] = await desk.deadOnes(service, 2)
    const path = desk.anotherPath()
    const flight = desk.publisher.hold()
    const call = desk.process(service, {}, path)
    await flight.begun
    const waiting = refusalId(desk.process(service, {}, path))
    const stopped = path.stop()
    expect(await waiting).toBe('dlqBusyError')
    flight.release()
    await call
    await stopped
    if (event === undefined) throw new Error('no event')
    expect(await desk.standing(event)).toMatchObject({ state: 'published' })
  })
})

describe('turns', () => {
  it('forget those who gave up', async () => {
    const turns = new ServiceQueues()
    const ends: string[] = []
    const slow = Promise.withResolvers<void>()
    const patient = new AbortController().signal
    const first = turns.inTurn('s', patient, () => slow.promise)
    const impatient = turns.inTurn('s', AbortSignal.abort('now'), async () => ends.push('never'))
    const second = turns.inTurn('s', patient, async () => ends.push('second'))
    await expect(impatient).rejects.toBe('now')
    slow.resolve()
    await Promise.all([first, second])
    expect(ends).toEqual(['second'])
  })

  it('go on after one who failed', async () => {
    const turns = new ServiceQueues()
    const { signal } = new AbortController()
    const failing = turns.inTurn('s', signal, () => Promise.reject(new Error('no')))
    const next = turns.inTurn('s', signal, async () => 'next')
    await expect(failing).rejects.toThrow('no')
    expect(await next).toBe('next')
  })
})
