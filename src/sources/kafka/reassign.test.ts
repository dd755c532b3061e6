import { afterEach, describe, expect, it } from 'vitest'
import { kafkaSettingsFor, SERVICES } from '../../../test/world/kafka/settings.ts'
import { KafkaWorld, type KafkaWorldOptions } from '../../../test/world/kafka/world.ts'
import { stores } from '../../../test/world/stores.ts'
import { silentLog } from '../../core/log.ts'
import { type OfficeRuns, officeRuns } from '../../letters/work.ts'
import { REASSIGNMENT, STATE, UNKNOWN } from './event.ts'
import { type Assignment, defineReassignment, type Reassigner, reassign } from './reassign.ts'
import type { StoredEvent } from './stored-event.ts'

describe.each(stores)('giving events to a service, on $name', (kind) => {
  let opened: KafkaWorld | undefined
  const open = async (options: KafkaWorldOptions = {}): Promise<KafkaWorld> => {
    opened = await KafkaWorld.open(kind, options)
    return opened
  }
  afterEach(async () => {
    await Promise.all([...started].map((runs) => runs.stop()))
    started.clear()
    await opened?.expectVerified()
    await opened?.close()
    opened = undefined
  })

  const caller = { actor: 'ann', requestId: '4e2ad5ec-7b8d-4f9a-9d7a-7a0c5f3e9b11' }
  const give = (kafka: KafkaWorld, event: StoredEvent, to: Assignment, deps: Partial<Reassigner> = {}) =>
    reassign({ ...kafka, ...deps }, event.dlqId, to, caller)
  const refused = (call: Promise<unknown>, code: string) => expect(call).rejects.toMatchObject({ code })

  it('moves it into the queue of that service, with what is true of it there', async () => {
    const kafka = await open()
    const event = await kafka.dead({ service: 'nobody', correlationId: null })
    expect(event).toMatchObject({ service: UNKNOWN, originalTopic: 'orders' })
    expect(event.facts.reasons).toEqual(['service_unknown'])
    await give(kafka, event, { service: 'irs-eu' })
    const moved = await kafka.again(event)
    expect(moved).toMatchObject({
      service: 'irs',
      originalTopic: 'orders',
      dlqId: event.dlqId,
      order: event.order,
    })
    expect(moved.facts.reasons).toEqual([])
    expect(moved.facts.warnings).toEqual(['correlation_id_minted'])
    expect(moved.facts.mintedCorrelationId).toBe(event.facts.mintedCorrelationId)
    expect(await kafka.letter(event)).toMatchObject({
      originalQueue: 'irs/orders',
      status: 'Pending',
      version: 2,
    })
    expect((await kafka.history()).at(-1)).toMatchObject({
      operation: 'kafka.reassigned',
      letterId: event.letterId,
      version: 2,
      actor: 'ann',
      output: {
        request_id: caller.requestId,
        dlq_id: event.dlqId,
        from: `${UNKNOWN}/orders`,
        to: 'irs/orders',
      },
    })
    const { items } = await kafka.letters.numbers.counts({ engine: 'kafka', status: 'Pending' }, [
      'originalQueue',
    ])
    expect(items.filter(({ count }) => count > 0)).toMatchObject([{ originalQueue: 'irs/orders', count: 1 }])
  })

  it('says from which topic it came, when its record does not', async () => {
    const kafka = await open()
    const event = await kafka.dead({ originalTopic: null })
    expect(event.facts.reasons).toContain('original_topic_missing')
    await give(kafka, event, { service: 'wps', topic: 'things' })
    const moved = await kafka.again(event)
    expect(moved).toMatchObject({ service: 'wps', originalTopic: 'things' })
    expect(moved.facts.reasons).toEqual([])
  })

  it('judges it by the rules of its new service', async () => {
    const kafka = await open()
    const event = await kafka.dead({ service: 'nobody', key: null, type: null })
    expect(event.facts.reasons).toEqual(expect.arrayContaining(['key_null', 'type_missing']))
    await give(kafka, event, { service: 'billing' })
    expect((await kafka.again(event)).facts.reasons).toEqual([])
  })

  it('keeps what the store alone knows of a record', async () => {
    const kafka = await open()
    const first = await kafka.dead()
    const event = await kafka.dead({ service: 'nobody', eventId: first.dlqId })
    await give(kafka, event, { service: 'wps' })
    const { facts } = await kafka.again(event)
    expect(facts).toMatchObject({ duplicateOf: first.dlqId })
    expect(facts.warnings).toContain('duplicate_event_id')
  })

  it('does nothing when it is there already', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    expect(await give(kafka, event, { service: 'wps' })).toMatchObject({ service: 'wps' })
    expect(await kafka.operations()).toEqual(['kafka.received'])
  })

  it('refuses what is on its way, uncertain, resolved or unknown', async () => {
    const kafka = await open()
    const [held, other] = [await kafka.dead(), await kafka.dead({ topic: 'ucs_dlq', service: 'ucs' })]
    const minted = await kafka.publishing(held)
    await refused(give(kafka, held, { service: 'ucs' }), 'letter_service_busy')
    await kafka.uncertain(held, minted)
    await refused(give(kafka, held, { service: 'ucs' }), 'letter_uncertain')
    await kafka.change(other, 'Resolved')
    await refused(give(kafka, other, { service: 'wps' }), 'letter_status_wrong')
    for (const dlqId of ['11111111-1111-4111-8111-111111111111', 'no uuid']) {
      await refused(reassign(kafka, dlqId, { service: 'wps' }, caller), 'letter_unknown')
    }
    for (const to of [{ service: 'nobody' }, { service: 'wps', topic: 'no topic' }]) {
      await refused(give(kafka, held, to), 'parameter_invalid')
    }
  })

  it('refuses a name that is spent', async () => {
    const kafka = await open()
    const event = await kafka.dead()
    await kafka.take(kafka.record({ originalEventId: await kafka.publish(event) }))
    await refused(give(kafka, event, { service: 'ucs' }), 'letter_unknown')
    expect(await give(kafka, await kafka.again(event), { service: 'ucs' })).toMatchObject({ service: 'ucs' })
  })

  const started = new Set<OfficeRuns>()
  const runsOf = (parts: Reassigner): OfficeRuns => {
    const runs = officeRuns(parts.db, parts.clock, silentLog)
    defineReassignment(runs, parts)
    started.add(runs)
    return runs
  }
  /** A round of a server with these settings. */
  const known = (parts: Reassigner) => runsOf(parts).round(REASSIGNMENT)

  it('happens by itself when the settings come to know the service', async () => {
    const kafka = await open()
    const made = Array.from({ length: 180 }, (_, i) =>
      kafka.record({ topic: 'dlq', service: i % 3 === 0 ? 'late' : i % 3 === 1 ? 'nobody' : 'dcs' }),
    )
    await kafka.take(...made)
    expect(await known(kafka)).toBe(null)
    const settings = kafkaSettingsFor({ services: { ...SERVICES, late: { dlqTopic: 'dlq' } } })
    const held = (await kafka.events()).find(({ service }) => service === UNKNOWN)
    if (held === undefined) throw new Error('none is of nobody')
    const minted = await kafka.publishing(held)
    expect(await known({ ...kafka, settings })).toMatchObject({
      state: 'done',
      done: 59,
      actor: REASSIGNMENT,
    })
    await kafka.uncertain(held, minted)
    // A round that does nothing leaves no row behind.
    expect(await known({ ...kafka, settings })).toBe(null)
    const services = Map.groupBy(await kafka.events(), ({ service }) => service)
    expect([...services].map(([service, events]) => [service, events.length]).sort()).toEqual([
      ['dcs', 60],
      ['late', 59],
      [UNKNOWN, 61],
    ])
    expect((await kafka.again(held)).state).toBe(STATE.uncertain)
    expect((await kafka.history()).filter(({ operation }) => operation === 'kafka.reassigned')).toHaveLength(
      59,
    )
    expect((await kafka.history()).at(-1)).toMatchObject({ actor: 'system' })
  })

  it('goes on elsewhere when its server ends on the way', async () => {
    const kafka = await open()
    const late = Array.from({ length: 130 }, () => kafka.record({ topic: 'dlq', service: 'late' }))
    await kafka.take(...late)
    const settings = kafkaSettingsFor({ services: { ...SERVICES, late: { dlqTopic: 'dlq' } } })
    const ended = runsOf({ ...kafka, settings })
    const begun = ended.round(REASSIGNMENT)
    await ended.stop()
    const left = await begun
    const other = runsOf({ ...kafka, settings })
    const done = await other.round(REASSIGNMENT)
    expect(done).toMatchObject({ id: left?.id, state: 'done', done: 130 })
    expect(await other.list({ kinds: null, states: null, before: null, limit: 10 })).toMatchObject([
      { kind: REASSIGNMENT, done: 130 },
    ])
    const moved = (await kafka.events()).filter(({ service }) => service === 'late')
    expect(moved).toHaveLength(130)
  })
})
