import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Desk, refusal, TESTER } from '../../../../test/world/kafka/return.ts'
import { stores } from '../../../../test/world/stores.ts'
import { UNKNOWN } from '../event.ts'

describe.each(stores)('discarding on $name', (kind) => {
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

  const discardNext = (service: string, dlqId: string | null = null) => desk.discardNext(service, dlqId)

  it('closes the next event, and no processor runs', async () => {
    const service = desk.service()
    const [first, second] = await desk.deadOnes(service, 2)
    if (first === undefined || second === undefined) throw new Error('no events')
    desk.decide = () => {
      throw new Error('a processor ran')
    }
    expect(await discardNext(service)).toMatchObject({ dlqId: first.dlqId })
    expect(await desk.standing(first)).toEqual({ state: 'discarded', status: 'Resolved', eventId: null })
    expect(await desk.standing(second)).toMatchObject({ state: 'pending' })
    expect(await desk.letter(first)).toMatchObject({ resolution: 'discard', resolvedBy: 'nell' })
    const row = (await desk.history()).at(-1)
    expect(row).toMatchObject({ operation: 'kafka.discarded', actor: 'nell', version: 2 })
    expect(row?.output).toEqual({ request_id: TESTER.requestId, dlq_id: first.dlqId, by: 'operator' })
    expect(desk.told).toEqual([`${service} orders discarded_operator`])
    await discardNext(service)
    expect(await refusal(discardNext(service))).toEqual({
      id: 'emptyDLQError',
      status: 404,
      data: { service },
    })
  })

  it('takes what is next only if it is the one that the caller means', async () => {
    const service = desk.service()
    const [first, second] = await desk.deadOnes(service, 2)
    expect(await refusal(discardNext(service, second?.dlqId))).toMatchObject({
      id: 'dlqSequenceError',
      status: 412,
      data: { service, topic: null, supplied_dlq_id: second?.dlqId, expected_dlq_id: first?.dlqId },
    })
    await discardNext(service, first?.dlqId)
    await discardNext(service, second?.dlqId)
  })

  it('takes one by its id wherever it stands, and does nothing a second time', async () => {
    const service = desk.service()
    const [, second] = await desk.deadOnes(service, 3)
    if (second === undefined) throw new Error('no events')
    expect(await desk.discard(second.dlqId.toUpperCase())).toBe(true)
    expect(await desk.discard(second.dlqId)).toBe(false)
    expect(await desk.historyOf(second)).toEqual(['discarded by nell'])
    for (const id of [randomUUID(), 'no id', '']) expect(await desk.discard(id)).toBe(false)
    await desk.process(service)
    await desk.process(service)
    expect(desk.sentKeys(service)).toEqual(['k0', 'k2'])
  })

  it('does nothing by an id that the event had before it died again', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    await desk.process(service)
    const again = await desk.deadOf(service, { originalEventId: desk.sentIds(service)[0] ?? '' })
    expect(await desk.discard(event.dlqId)).toBe(false)
    expect(await desk.standing(event)).toMatchObject({ state: 'pending' })
    expect(await desk.discard(again.dlqId)).toBe(true)
  })

  it('works on letters that no service has', async () => {
    const event = await desk.dead({ topic: 's0_dlq', service: 'nobody', originalTopic: null })
    expect(await discardNext(UNKNOWN)).toMatchObject({ dlqId: event.dlqId })
  })

  it('can be taken back by the office', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    await discardNext(service)
    const letter = await desk.letter(event)
    await desk.letters.change(letter, { status: 'Pending', notes: null, actor: 'nell' })
    await desk.process(service)
    expect(await desk.standing(event)).toMatchObject({ state: 'published' })
  })
})
