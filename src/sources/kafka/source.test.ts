import { afterEach, describe, expect, it } from 'vitest'
import { KafkaWorld, type KafkaWorldOptions } from '../../../test/world/kafka/world.ts'
import { stores } from '../../../test/world/stores.ts'
import { STATE } from './event.ts'
import type { StoredEvent } from './stored-event.ts'

describe.each(stores)('letters of Kafka in the office, on $name', (kind) => {
  let opened: KafkaWorld | undefined
  const open = async (options: KafkaWorldOptions = {}): Promise<KafkaWorld> => {
    opened = await KafkaWorld.open(kind, options)
    return opened
  }
  afterEach(async () => {
    await opened?.expectVerified()
    await opened?.close()
    opened = undefined
  })

  const stateOf = async (kafka: KafkaWorld, event: StoredEvent) => (await kafka.again(event)).state
  const keyOf = async (kafka: KafkaWorld, event: StoredEvent) => ({
    engine: 'kafka',
    rowKey: (await kafka.letter(event)).rowKey,
  })

  it('are discarded and restored, at their own place in the order', async () => {
    const kafka = await open()
    const [first, second] = [await kafka.dead(), await kafka.dead()]
    await kafka.change(first, 'Resolved')
    expect(await stateOf(kafka, first)).toBe(STATE.discarded)
    expect(await kafka.operations()).toContain('kafka.discarded')
    await kafka.change(first, 'Pending')
    expect(await stateOf(kafka, first)).toBe(STATE.pending)
    expect((await kafka.events()).map(({ letterId }) => letterId)).toEqual([first.letterId, second.letterId])
  })

  it('expire, one by one and many at once, but for those that are on their way', async () => {
    const kafka = await open()
    const events = [
      await kafka.dead(),
      await kafka.dead(),
      await kafka.dead({ topic: 'ucs_dlq', service: 'ucs' }),
    ]
    const [one, held, other] = events as [StoredEvent, StoredEvent, StoredEvent]
    const minted = await kafka.publishing(held)
    await kafka.change(other, 'Expired')
    kafka.clock.advance(3n * 86_400_000_000n)
    expect(await kafka.letters.expireOlder({ olderThanDays: 1, engine: 'kafka', actor: 'tester' })).toBe(1)
    expect(await Promise.all(events.map((event) => stateOf(kafka, event)))).toEqual([
      STATE.discarded,
      STATE.publishing,
      STATE.discarded,
    ])
    await kafka.published(held, minted)
    await kafka.change(one, 'Pending')
    expect(await stateOf(kafka, one)).toBe(STATE.pending)
  })

  it.each(['Resolved', 'Expired'] as const)('refuse to be %s while they are on their way', async (status) => {
    const kafka = await open()
    const event = await kafka.dead()
    await kafka.publishing(event)
    await expect(kafka.change(event, status)).rejects.toMatchObject({ code: 'letter_service_busy' })
    expect(await stateOf(kafka, event)).toBe(STATE.publishing)
  })

  it('that are uncertain can be discarded, and are uncertain again when they are restored', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    const minted = await kafka.publishing(event)
    await kafka.uncertain(event, minted)
    await kafka.change(event, 'Resolved')
    expect(await stateOf(kafka, event)).toBe(STATE.discarded)
    await kafka.change(event, 'Pending')
    expect(await kafka.again(event)).toMatchObject({ state: STATE.uncertain, eventId: minted })
  })

  it('that were published can be restored: what is on a topic stays there', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    await kafka.publish(event)
    await kafka.change(event, 'Pending')
    expect(await kafka.again(event)).toMatchObject({ state: STATE.pending, eventId: null })
    expect(await kafka.letter(event)).toMatchObject({ status: 'Pending', sentAs: null })
  })

  it('leave nothing behind when they are removed, but for the register of records', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    const kept = await kafka.dead()
    await kafka.take(kafka.record({ originalEventId: await kafka.publish(event) }))
    await kafka.publish(event)
    await kafka.removeResolved()
    expect((await kafka.events()).map(({ letterId }) => letterId)).toEqual([kept.letterId])
    expect(await kafka.rowsOf('kafka_chain')).toBe(0)
    expect(await kafka.rowsOf('kafka_sends')).toBe(0)
    expect(await kafka.rowsOf('kafka_records')).toBe(3)
  })

  it('go nowhere where Kafka is not enabled', async () => {
    const kafka = await open({ returnWay: () => null })
    const key = await keyOf(kafka, await kafka.dead())
    const retry = { edit: null, notes: null, actor: 'tester' }
    await expect(kafka.letters.preview(key, null)).rejects.toMatchObject({ code: 'kafka_not_enabled' })
    await expect(kafka.letters.retry(key, retry)).rejects.toMatchObject({ code: 'kafka_not_enabled' })
  })
})
