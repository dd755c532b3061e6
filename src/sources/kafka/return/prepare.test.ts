import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Desk, DOUBT, refusal, refusalId } from '../../../../test/world/kafka/return.ts'
import { stores } from '../../../../test/world/stores.ts'
import { sql } from '../../../store/database.ts'
import type { ResolveRequest } from '../routes/resolve.ts'
import { shownBytes } from '../wire/bytes.ts'
import type { Resolution } from './attempt.ts'

const TABLES = [
  'letters',
  'letter_totals',
  'history',
  'kafka_events',
  'kafka_records',
  'kafka_sends',
  'kafka_chain',
  'kafka_services',
  'kafka_partitions',
]
const dumps = TABLES.map((table) =>
  sql(`test.kafka.dump.${table}`, `SELECT * FROM bartleby.${table}`, { bigints: true }),
)

describe.each(stores)('a dry run on $name', (kind) => {
  let desk: Desk
  beforeAll(async () => {
    desk = await Desk.open(kind)
  })
  afterAll(() => desk?.close())
  afterEach(() => {
    desk.decide = () => ({ action: 'publish', change: {} })
  })

  const text = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)
  const dump = () =>
    desk.db.session('test', async (session) => {
      const tables: string[] = []
      for (const statement of dumps) tables.push(JSON.stringify(await session.rows(statement), text))
      return tables.join('\n')
    })

  /** What a call gives, without the id that is minted anew each time. */
  const outcomeOf = async (call: Promise<Resolution>) => {
    const refused = await refusal(call)
    if (refused !== null) return refused
    const { event, warnings, ...rest } = await call
    const given = { outcome: rest.outcome, dlqId: event.dlqId, warnings }
    if (rest.outcome === 'discarded') return { ...given, reason: rest.reason }
    const { topic, key, value, headers } = rest.record
    const texts = headers.map((header) => [shownBytes(header.name), shownBytes(header.value)])
    const lasting = texts.filter(([name]) => name !== 'event_id')
    return { ...given, record: [topic, shownBytes(key), shownBytes(value), lasting] }
  }

  /** The same answer twice, and nothing written; then the real thing gives the same. */
  const expectSame = async (service: string, request: Partial<ResolveRequest> = {}) => {
    desk.told.length = 0
    const before = await dump()
    const sent = desk.publisher.sent.length
    const answer = await outcomeOf(desk.dryRun(service, request))
    expect(await outcomeOf(desk.dryRun(service, request))).toEqual(answer)
    expect(await dump()).toBe(before)
    expect(desk.publisher.sent).toHaveLength(sent)
    expect(desk.told).toEqual([])
    expect(await outcomeOf(desk.process(service, request))).toEqual(answer)
    return answer
  }

  it('shows what would be sent', async () => {
    const service = desk.service()
    await desk.deadOf(service, { value: '{"ü":1}', key: 'same' })
    await desk.deadOf(service, { key: 'same' })
    const resolution = await desk.dryRun(service)
    expect(resolution).toMatchObject({
      outcome: 'published',
      warnings: ['value_needs_escape', 'later_same_key'],
    })
    await expectSame(service)
  })

  it('shows what a processor would do', async () => {
    const service = desk.service()
    await desk.deadOnes(service, 4)
    desk.decide = () => ({ action: 'publish', change: { key: 'changed' } })
    await expectSame(service)
    desk.decide = () => ({ action: 'failed', message: 'it threw' })
    expect(await expectSame(service)).toMatchObject({ id: 'processingError' })
    desk.decide = () => ({ action: 'timeout', message: 'too slow' })
    expect(await expectSame(service)).toMatchObject({ id: 'processingTimeoutError' })
    desk.decide = () => ({ action: 'discard', reason: 'a test' })
    expect(await expectSame(service)).toMatchObject({ outcome: 'discarded', reason: 'a test' })
  })

  it('is refused as the real thing is', async () => {
    const service = desk.service()
    expect(await expectSame(service)).toMatchObject({ id: 'emptyDLQError' })
    const [event] = await desk.deadOnes(service, 1, { value: 'no JSON' })
    expect(await expectSame(service)).toMatchObject({ id: 'publishGuardError' })
    const dlqId = '00000000-0000-4000-8000-000000000000'
    expect(await expectSame(service, { dlqId })).toMatchObject({ id: 'dlqSequenceError', status: 412 })
    const override = { topic: 'retry-me', type: 't', key: 'k', value: Buffer.from('{}') }
    const request = { topic: 'orders', dlqId: event?.dlqId ?? '', override }
    expect(await expectSame(service, request)).toMatchObject({ id: 'overrideValidationError' })
    expect(
      await expectSame(service, { ...request, override: { ...override, topic: 'orders' } }),
    ).toMatchObject({
      outcome: 'published',
    })
  })

  it('shows an uncertain event as such, and what a resend would send', async () => {
    const service = desk.service()
    await desk.deadOf(service)
    desk.publisher.next(DOUBT)
    await refusalId(desk.process(service))
    expect(await expectSame(service)).toMatchObject({ id: 'uncertainPublishError' })
    const resolution = await desk.dryRun(service, { resend: true })
    expect(resolution).toMatchObject({ outcome: 'published', record: desk.publisher.sent.at(-1) })
    await expectSame(service, { resend: true })
  })

  it('waits for nobody', async () => {
    const service = desk.service()
    await desk.deadOf(service)
    const flight = desk.publisher.hold()
    const call = desk.process(service)
    await flight.begun
    expect(await desk.dryRun(service)).toMatchObject({ outcome: 'published' })
    flight.release()
    await call
  })
})
