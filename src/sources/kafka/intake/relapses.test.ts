import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { oldRecord } from '../../../../test/world/kafka/records.ts'
import { KafkaWorld, type KafkaWorldOptions } from '../../../../test/world/kafka/world.ts'
import { reused } from '../../../../test/world/reused-store.ts'
import { stores } from '../../../../test/world/stores.ts'
import { type EventId, type RawRecord, STATE } from '../event.ts'
import { earlierValue, readChain } from '../queue-reader.ts'
import type { StoredEvent } from '../stored-event.ts'

const text = (bytes: Uint8Array | null | undefined): string | null =>
  bytes == null ? null : Buffer.from(bytes).toString()

describe.each(stores)('an event that died again, on $name', (kind) => {
  const places = reused(kind)
  let opened: KafkaWorld | undefined
  const open = async (options: KafkaWorldOptions = {}): Promise<KafkaWorld> => {
    opened = await KafkaWorld.open(places, options)
    return opened
  }
  afterEach(async () => {
    await opened?.expectVerified()
    await opened?.close()
    opened = undefined
  })

  const chainOf = async (kafka: KafkaWorld, { letterId }: StoredEvent) =>
    (await kafka.db.session('test', (session) => readChain(session, [letterId]))).get(letterId) ?? []

  /** The record that a service writes when the retry of an event fails. */
  const deadAgain = (kafka: KafkaWorld, minted: EventId, draft: Parameters<KafkaWorld['record']>[0] = {}) =>
    kafka.record({ originalEventId: minted, ...draft })

  it('reopens its letter, which stands for the new record', async () => {
    const kafka = await open()
    const first = await kafka.dead({ key: 'k1', value: '{"a":1}', excMsg: 'first' })
    const between = await kafka.dead({ key: 'k2' })
    const minted = await kafka.publish(first, { partition: 2, offset: 40n })
    kafka.clock.advance(5_000_000n)
    const again = deadAgain(kafka, minted, {
      key: 'k1',
      value: '{"a": 1}',
      excMsg: 'second',
      excClass: 'KeyError',
      type: 'changed',
      correlationId: 'dfdcc063-3332-4ebd-bbe2-515e4af2fbf9',
    })
    expect(await kafka.take(again)).toEqual({ received: 1, duplicates: 0, created: 0, reopened: 1 })

    const events = await kafka.events()
    // At the place of the new record.
    expect(events.map((event) => event.letterId)).toEqual([between.letterId, first.letterId])
    const event = await kafka.again(first)
    expect(event).toMatchObject({ state: STATE.pending, attempts: 2, eventId: null, rowKey: first.rowKey })
    expect(event.dlqId).not.toBe(first.dlqId)
    expect(event.order).toMatchObject({
      topic: again.topic,
      offset: again.offset,
      orderTs: again.timestampMs,
    })
    expect(text(event.value)).toBe('{"a": 1}')
    expect(event.facts.exception).toMatchObject({ class: 'KeyError', message: 'second' })
    expect(await kafka.letter(first)).toMatchObject({
      status: 'Pending',
      version: 3,
      dequeueCount: 2,
      errorClass: 'KeyError',
      errorMessage: 'second',
      kind: 'changed',
      correlationId: 'dfdcc063-3332-4ebd-bbe2-515e4af2fbf9',
      resolvedAt: null,
    })
    expect(await kafka.operations()).toEqual([
      'kafka.received',
      'kafka.received',
      'kafka.published',
      'kafka.reopened',
    ])
    expect(await chainOf(kafka, event)).toMatchObject([
      {
        number: 1,
        dlqId: first.dlqId,
        topic: 'wps_dlq',
        partition: 0,
        recordOffset: 0n,
        recordTs: first.timestampMs,
        facts: { exception: { class: 'ValueError', message: 'first' } },
        sent: {
          eventId: minted,
          target: 'wps_retry',
          publishedPartition: 2,
          publishedOffset: 40n,
          outcome: 'published',
          resends: 0,
          actor: 'tester',
        },
      },
    ])
  })

  it('dies as often as it is sent, the oldest death first in its chain', async () => {
    const kafka = await open()
    let event = await kafka.dead()
    const ids = [event.dlqId]
    for (const attempts of [2, 3, 4]) {
      const minted = await kafka.publish(event)
      kafka.clock.advance(1_000_000n)
      await kafka.take(deadAgain(kafka, minted))
      event = await kafka.again(event)
      expect(event.attempts).toBe(attempts)
      ids.push(event.dlqId)
    }
    const chain = await chainOf(kafka, event)
    expect(chain.map(({ number }) => number)).toEqual([1, 2, 3])
    expect([...chain.map(({ dlqId }) => dlqId), event.dlqId]).toEqual(ids)
    expect(await kafka.partitions()).toMatchObject([{ received: 4, created: 1, reopened: 3 }])
  })

  it('forgets what an operator made of the record before', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    await kafka.edit(event, '{"a":2}')
    expect(text((await kafka.again(event)).editedValue)).toBe('{"a":2}')
    await kafka.take(deadAgain(kafka, await kafka.publish(event)))
    expect((await kafka.again(event)).editedValue).toBeNull()
  })

  it.each(['uncertain', 'publishing'] as const)(
    'settles a publish that is %s: it did happen',
    async (state) => {
      const counted: unknown[] = []
      const kafka = await open({ listener: { resolved: (...what) => counted.push(what) } })
      const event = await kafka.dead()
      const minted = await kafka.publishing(event)
      if (state === 'uncertain') await kafka.uncertain(event, minted)
      expect(await kafka.take(deadAgain(kafka, minted))).toMatchObject({ reopened: 1 })
      expect(await kafka.again(event)).toMatchObject({ state: STATE.pending, attempts: 2, eventId: null })
      expect(await kafka.operations()).toEqual(['kafka.received', 'kafka.published', 'kafka.reopened'])
      const letter = await kafka.letter(event)
      expect(letter).toMatchObject({ status: 'Pending', version: 3 })
      expect((await chainOf(kafka, event))[0]?.sent).toMatchObject({
        outcome: 'published',
        publishedPartition: null,
      })
      expect(await kafka.hold(event)).toEqual({ claim: null, claimedBy: null, leased: false })
      // Who is publishing it hears from the broker, and counts it.
      expect(counted).toEqual(state === 'uncertain' ? [['wps', 'orders', 'published']] : [])
    },
  )

  it('reopens a letter that was discarded because its publish was thought to have happened', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    const minted = await kafka.publishing(event)
    await kafka.uncertain(event, minted)
    await kafka.change(event, 'Resolved')
    await kafka.take(deadAgain(kafka, minted))
    expect(await kafka.again(event)).toMatchObject({ state: STATE.pending, attempts: 2 })
    expect(await kafka.operations()).toEqual(['kafka.received', 'kafka.discarded', 'kafka.reopened'])
  })

  it('reopens a letter that was restored meanwhile', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    const minted = await kafka.publish(event)
    await kafka.change(event, 'Pending')
    expect(await kafka.again(event)).toMatchObject({ state: STATE.pending, eventId: null })
    await kafka.take(deadAgain(kafka, minted))
    expect(await kafka.again(event)).toMatchObject({ state: STATE.pending, attempts: 2 })
  })

  it('takes the letter from who publishes it a second time', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    const first = await kafka.publish(event)
    await kafka.change(event, 'Pending')
    const second = await kafka.publishing(event)
    await kafka.take(deadAgain(kafka, first))
    expect(await kafka.again(event)).toMatchObject({ state: STATE.pending, eventId: null, attempts: 2 })
    expect((await chainOf(kafka, event))[0]?.sent?.eventId).toBe(first)
    // What was on its way arrives, and dies too.
    await kafka.take(deadAgain(kafka, second))
    expect(await kafka.again(event)).toMatchObject({ attempts: 3 })
  })

  it('reopens its letter once: a further record is a letter of its own', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    const minted = await kafka.publish(event)
    const stored = await kafka.take(deadAgain(kafka, minted), deadAgain(kafka, minted))
    expect(stored).toMatchObject({ reopened: 1, created: 1 })
    expect(await kafka.take(deadAgain(kafka, minted))).toMatchObject({ reopened: 0, created: 1 })
    const events = await kafka.events()
    expect(events.map(({ facts }) => facts.warnings.includes('duplicate_retry'))).toEqual([false, true, true])
    expect(await kafka.take(kafka.record({ offset: 1, originalEventId: randomUUID() }))).toMatchObject({
      created: 1,
    })
  })

  it('dies twice within a batch', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    const first = await kafka.publish(event)
    await kafka.change(event, 'Pending')
    const second = await kafka.publish(event)
    const stored = await kafka.take(
      deadAgain(kafka, first, { key: 'one' }),
      kafka.record({ key: 'other' }),
      deadAgain(kafka, second, { key: 'two' }),
    )
    expect(stored).toMatchObject({ reopened: 2, created: 1 })
    const now = await kafka.again(event)
    expect(now.attempts).toBe(3)
    expect(text(now.key)).toBe('two')
    expect((await chainOf(kafka, now)).map(({ sent }) => sent?.eventId)).toEqual([first, second])
  })

  it('is a new letter when the one it had is removed', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    const minted = await kafka.publish(event)
    await kafka.removeResolved()
    expect(await kafka.take(deadAgain(kafka, minted))).toMatchObject({ created: 1, reopened: 0 })
    expect((await kafka.events())[0]?.facts.warnings).toEqual([])
  })

  it('moves to the queue of the service that the new record names', async () => {
    const kafka = await open()
    const event = await kafka.dead({ topic: 'dlq', service: 'dcs' })
    const minted = await kafka.publish(event)
    await kafka.take(deadAgain(kafka, minted, { topic: 'dlq', service: 'irs', originalTopic: 'things' }))
    expect(await kafka.again(event)).toMatchObject({ service: 'irs', originalTopic: 'things' })
    expect((await kafka.letter(event)).originalQueue).toBe('irs/things')
  })

  it('keeps the value before in its chain only when it was another one', async () => {
    const kafka = await open()
    const events: StoredEvent[] = []
    for (const value of ['{"a":1}', '{"a":1}', '', null]) events.push(await kafka.dead({ value }))
    const next = ['{"a":1}', '{"b":1}', null, '']
    const minted: EventId[] = []
    for (const event of events) minted.push(await kafka.publish(event))
    await kafka.take(...minted.map((id, i) => deadAgain(kafka, id, { value: next[i] ?? null })))
    expect((await kafka.chainValues()).map(({ value, isNull }) => [text(value), isNull])).toEqual([
      [null, false],
      ['{"a":1}', false],
      ['', false],
      ['', true],
    ])
    for (const [i, value] of ['{"a":1}', '{"a":1}', '', null].entries()) {
      const event = events[i]
      if (event === undefined) throw new Error('there is no such event')
      const now = await kafka.again(event)
      const before = await kafka.db.session('test', (session) => earlierValue(session, now, event.dlqId))
      expect(text(before)).toBe(value)
    }
  })

  it('tells the value of every record that it was, also where two had the same', async () => {
    const kafka = await open()
    let event = await kafka.dead({ value: '1' })
    const names = [event.dlqId]
    for (const value of ['1', '1', '2', '2']) {
      await kafka.take(deadAgain(kafka, await kafka.publish(event), { value }))
      event = await kafka.again(event)
      names.push(event.dlqId)
    }
    const values: (string | null)[] = []
    for (const name of names.slice(0, -1)) {
      values.push(text(await kafka.db.session('test', (session) => earlierValue(session, event, name))))
    }
    expect(values).toEqual(['1', '1', '1', '2'])
  })

  it('is known by its place when its service is of an old generation', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    await kafka.publish(event, { partition: 1, offset: 77n })
    const other = await kafka.dead()
    await kafka.publish(other, { partition: 1, offset: 78n })
    const readFrom = { service: 'wps', topic: 'wps_retry', partition: 1, offset: 77 }
    expect(await kafka.take(oldRecord(readFrom, { offset: 10 }))).toMatchObject({ reopened: 1 })
    expect(await kafka.again(event)).toMatchObject({ attempts: 2, state: STATE.pending })
    expect(await kafka.take(oldRecord(readFrom, { offset: 11 }))).toMatchObject({ created: 1 })
    expect((await kafka.eventAt({ topic: 'wps_dlq', partition: 0, offset: 11n })).facts.warnings).toContain(
      'duplicate_retry',
    )
    for (const [i, offset] of [79, '9'.repeat(30)].entries()) {
      const absurd = { ...readFrom, offset: BigInt(offset) }
      expect(await kafka.take(oldRecord(absurd, { offset: 20 + i }))).toMatchObject({ created: 1 })
    }
  })

  it('is known by the id of the retry when the dead record keeps that as its own', async () => {
    const kafka = await open()
    const event = await kafka.dead({ originalEventId: null })
    const minted = await kafka.publish(event)
    const kept = { originalEventId: null, eventId: minted.toUpperCase() }
    expect(await kafka.take(kafka.record(kept))).toMatchObject({ created: 0, reopened: 1 })
    expect(await kafka.again(event)).toMatchObject({ attempts: 2, state: STATE.pending, dlqId: minted })
    expect(await kafka.take(kafka.record(kept))).toMatchObject({ created: 1, reopened: 0 })
    const [, copy] = await kafka.events()
    expect(copy?.facts.warnings).toEqual(expect.arrayContaining(['duplicate_event_id', 'duplicate_retry']))
  })

  it('is put on record now, however old its record says it is', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    await kafka.take(deadAgain(kafka, await kafka.publish(event), { timestampMs: 0 }))
    const { history } = await kafka.letters.get({ engine: 'kafka', rowKey: event.rowKey })
    expect(history.find(({ operation }) => operation === 'kafka.reopened')?.createdAt).toBeGreaterThanOrEqual(
      kafka.clock.now(),
    )
    expect((await kafka.letter(event)).lastFailureAt).toBe(0n)
  })

  it('stays one case while the office acts on it', async () => {
    const kafka = await open()
    const other = kafka.anotherIntake()
    const events: StoredEvent[] = []
    for (let i = 0; i < 6; i++) events.push(await kafka.dead({ partition: i % 2 }))
    const again: RawRecord[] = []
    for (const event of events) again.push(deadAgain(kafka, await kafka.publish(event), { partition: 2 }))
    const act = async (event: StoredEvent): Promise<void> => {
      await kafka.change(event, 'Pending')
      await kafka.change(event, 'Resolved')
    }
    // An operator may find a letter pending that was resolved a moment before, and is refused.
    await Promise.all([other.prepare(again)(), ...events.map((event) => act(event).catch(() => {}))])
    expect((await kafka.events()).map(({ attempts }) => attempts)).toEqual(events.map(() => 2))
  })

  it('reopens one letter when two servers read its records from two partitions', async () => {
    const kafka = await open()
    if (kafka.db.dialect === 'sqlite') return
    const other = kafka.anotherIntake()
    for (let i = 0; i < 5; i++) {
      const event = await kafka.dead()
      const minted = await kafka.publish(event)
      const stored = await Promise.all([
        kafka.records.prepare([deadAgain(kafka, minted, { partition: 1 })])(),
        other.prepare([deadAgain(kafka, minted, { partition: 2 })])(),
      ])
      expect(stored.map(({ reopened }) => reopened).sort()).toEqual([0, 1])
    }
  })
})
