import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { AWAY, Desk, DOUBT, refusalId, TOO_LARGE } from '../../../test/world/kafka/return.ts'
import { stores } from '../../../test/world/stores.ts'
import { BartlebyError } from '../../core/errors.ts'
import type { StoredEvent } from './stored-event.ts'

/** The code of the error that a call fails with, and what it says of it. */
async function failureOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'done'
  } catch (error) {
    if (error instanceof BartlebyError) return [error.code, ...Object.values(error.details)].join(' ')
    throw error
  }
}

describe.each(stores)('the office on $name', (kind) => {
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

  const retry = (event: StoredEvent, payload: string | null = null, notes: string | null = null) =>
    desk.letters.retry(
      { engine: 'kafka', rowKey: event.rowKey },
      { edit: payload === null ? null : { payload: Buffer.from(payload) }, notes, actor: 'operator' },
    )
  const preview = (event: StoredEvent, payload: string | null = null) =>
    desk.letters.preview(
      { engine: 'kafka', rowKey: event.rowKey },
      payload === null ? null : { payload: Buffer.from(payload) },
    )

  it('sends a letter back, wherever it stands', async () => {
    const service = desk.service()
    const [first, second] = await desk.deadOnes(service, 2)
    if (first === undefined || second === undefined) throw new Error('no events')
    const { outgoing } = await preview(second)
    expect(outgoing).toMatchObject({
      letterId: second.letterId,
      queue: `retry-${service}`,
      kind: 'created',
      reference: 'k1',
      correlationId: second.facts.correlationId,
    })
    expect(Buffer.from(outgoing.payload).toString()).toBe('{"n":1}')
    const receipt = await retry(second, null, 'again, please')
    expect(receipt).toEqual({ messageId: desk.sentIds(service)[0], queue: `retry-${service}` })
    expect(await desk.standing(second)).toMatchObject({ state: 'published', status: 'Resolved' })
    expect(await desk.letter(second)).toMatchObject({
      resolvedBy: 'operator',
      notes: 'again, please',
      sentAs: receipt.messageId,
      sentTo: receipt.queue,
    })
    expect(await desk.historyOf(second)).toEqual(['published by operator'])
    expect(await desk.standing(first)).toMatchObject({ state: 'pending' })
    expect(await failureOf(retry(second))).toBe('letter_status_wrong retried Resolved Pending')
    // One that died again can be sent again.
    await desk.deadOf(service, { originalEventId: receipt.messageId, key: 'k1' })
    await retry(second)
  })

  it('keeps the answer to a key with the end of the retry: asked again after a crash, it is given', async () => {
    const event = await desk.deadOf(desk.service())
    const ask = () =>
      desk.letters.retryOnce(
        { scope: 'operator', key: event.rowKey },
        { engine: 'kafka', rowKey: event.rowKey },
        { edit: null, notes: null, actor: 'operator' },
      )
    const real = desk.db.transaction.bind(desk.db)
    const crash = vi.spyOn(desk.db, 'transaction')
    crash.mockImplementation((verb, act) =>
      verb === 'idempotency.keep' ? Promise.reject(new Error('crash')) : real(verb, act),
    )
    await expect(ask()).rejects.toThrow('crash')
    crash.mockRestore()
    expect(await ask()).toMatchObject({
      status: 200,
      body: { messageId: (await desk.letter(event)).sentAs },
    })
  })

  it('does not send a letter before an older one with the same key', async () => {
    const service = desk.service()
    const older = await desk.deadOf(service, { key: 'same' })
    const other = await desk.deadOf(service, { key: 'same', originalTopic: 'bills' })
    const newer = await desk.deadOf(service, { key: 'same' })
    const keyless = await desk.deadOf(service, { key: null })
    const notNext = `letter_not_next ${older.rowKey}`
    expect(await failureOf(retry(newer))).toBe(notNext)
    expect(await failureOf(preview(newer))).toBe(notNext)
    await retry(other)
    expect(await failureOf(retry(keyless))).toBe('letter_guarded key_null')
    await retry(older)
    await retry(newer)
    expect(desk.sentKeys(service)).toEqual(['same', 'same', 'same'])
  })

  it('sends what an operator made of the value, and no processor runs', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service, { value: 'no JSON' })
    desk.decide = () => ({ action: 'discard', reason: null })
    expect(await failureOf(retry(event, 'no JSON either'))).toBe('letter_guarded value_not_json')
    expect((await desk.letter(event)).editedPayload).toBeNull()
    desk.publisher.next(AWAY)
    expect(await failureOf(retry(event, '{"ü": 1.0}'))).toBe('letter_kafka_away no broker answers')
    expect((await desk.letter(event)).editedPayload).toBeNull()
    expect((await preview(event, '{"ü": 1.0}')).edited).toBe(true)
    await retry(event, '{"ü": 1.0}')
    expect(desk.sentValues(service)).toEqual(['{"\\u00fc": 1.0}', '{"\\u00fc": 1.0}'])
    const letter = await desk.letter(event)
    expect(Buffer.from(letter.editedPayload ?? []).toString()).toBe('{"ü": 1.0}')
    expect(Buffer.from(letter.payload).toString()).toBe('no JSON')
    // Restored, it is sent as the operator made it, by whomever.
    await desk.letters.change(letter, { status: 'Pending', notes: null, actor: 'operator' })
    await desk.process(service)
    expect(desk.sentValues(service).at(-1)).toBe('{"\\u00fc": 1.0}')
  })

  it('keeps an edit that may have been published, and sends the same again', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    desk.publisher.next(DOUBT)
    expect(await failureOf(retry(event, '{"edited":1}'))).toBe(`letter_uncertain ${desk.sentIds(service)[0]}`)
    expect(Buffer.from((await desk.letter(event)).editedPayload ?? []).toString()).toBe('{"edited":1}')
    expect(await failureOf(retry(event))).toBe(`letter_uncertain ${desk.sentIds(service)[0]}`)
    expect(await failureOf(preview(event))).toBe(`letter_uncertain ${desk.sentIds(service)[0]}`)
    await desk.process(service, { resend: true })
    expect(desk.sentValues(service)).toEqual(['{"edited":1}', '{"edited":1}'])
  })

  it('is told what is in the way', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    desk.decide = () => ({ action: 'discard', reason: 'unwanted' })
    expect(await failureOf(retry(event))).toBe('letter_processor_discards')
    expect(await failureOf(preview(event))).toBe('letter_processor_discards')
    desk.decide = () => ({ action: 'failed', message: 'it threw' })
    expect(await failureOf(retry(event))).toBe('letter_processor_failed it threw')
    desk.decide = () => ({ action: 'publish', change: { topic: 'retry-x' } })
    expect(await failureOf(retry(event))).toBe('letter_guarded original_topic_invalid')
    desk.decide = () => ({ action: 'publish', change: {} })
    desk.publisher.next(TOO_LARGE, AWAY)
    expect(await failureOf(retry(event))).toBe('letter_guarded too_large')
    expect(await failureOf(retry(event))).toBe('letter_kafka_away no broker answers')
    expect(await desk.standing(event)).toMatchObject({ state: 'pending', status: 'Pending' })
    expect(await desk.historyOf(event)).toEqual([
      'refused by operator',
      'processor_failed by operator',
      'refused by operator',
      'publish_failed by operator',
      'publish_failed by operator',
    ])
    const stray = await desk.dead({ topic: `${service}_dlq`, service: 'nobody' })
    expect(await failureOf(retry(stray))).toBe(`letter_service_unknown ${stray.dlqId}`)
    await desk.discard(stray.dlqId)
  })

  it('waits for what is in flight, and sends a letter once', async () => {
    const service = desk.service()
    const [first, second] = await desk.deadOnes(service, 2)
    if (first === undefined || second === undefined) throw new Error('no events')
    const flight = desk.publisher.hold()
    const call = desk.process(service)
    await flight.begun
    const calls = [failureOf(retry(second)), failureOf(retry(second)), failureOf(retry(first))]
    flight.release()
    await call
    const [one, two, three] = await Promise.all(calls)
    expect([one, two]).toContain('done')
    expect([one, two]).toContain('letter_status_wrong retried Resolved Pending')
    expect(three).toBe('letter_status_wrong retried Resolved Pending')
    expect(desk.sentKeys(service)).toEqual(['k0', 'k1'])
  })

  it('neither discards nor sends what is in flight elsewhere for too long', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    const flight = desk.publisher.hold()
    const call = desk.process(service)
    await flight.begun
    const letter = await desk.letter(event)
    const change = { status: 'Resolved', notes: 'unwanted', actor: 'operator' } as const
    expect(await failureOf(desk.letters.change(letter, change))).toBe(`letter_service_busy ${service}`)
    flight.release()
    await call
    expect(await refusalId(desk.process(service))).toBe('emptyDLQError')
  })
})
