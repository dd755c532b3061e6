/** Publishes that the broker refuses: the caller is told, the event is where it was, and it leaves when the reason is gone. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { KafkaServers, type Service } from '../world/kafka/server.ts'
import { freshSqlite } from '../world/stores.ts'

const MEBIBYTE = 1_048_576

interface Refusal {
  readonly exception_id: string
  readonly data: Readonly<Record<string, unknown>>
}

describeKafka('a publish that the broker refuses', () => {
  let here: KafkaServers
  beforeAll(async () => {
    here = await KafkaServers.open(
      { name: 'sqlite', fresh: freshSqlite },
      {
        services: {
          missing: { hasNoRetryTopic: true },
          // Its DLQ topic takes what its retry topic does not.
          large: { dlqConfig: { 'max.message.bytes': String(4 * MEBIBYTE) } },
        },
        kafka: { max_message_bytes: 4 * MEBIBYTE },
      },
    )
  })
  afterAll(() => here.close())

  const process = ({ name }: Service) => here.ask<Refusal | null>(`/kafka/${name}`, { method: 'POST' })

  const expectFree = async (service: Service): Promise<void> => {
    expect(await here.preview(service)).toMatchObject([{ bartleby: { state: 'pending', attempts: 1 } }])
    expect(await here.pending(service)).toBe(1)
  }

  const lastRow = async () => {
    const [row] = await here.history()
    return { ...row, output: JSON.parse(row?.output ?? '{}') }
  }

  it('because there is no such topic', async () => {
    const service = here.service('missing')
    await here.die(service, [{}])
    await here.expectPending(service, 1)
    // A rehearsal cannot know.
    expect((await here.ask(`/kafka/rpc/dry-run/${service.name}`)).status).toBe(200)
    const { status, body, headers } = await process(service)
    expect([status, body?.exception_id, body?.data]).toEqual([503, 'kafkaUnavailableError', {}])
    expect(headers.get('retry-after')).toMatch(/^\d+$/)
    await expectFree(service)
    expect(await lastRow()).toMatchObject({
      operation: 'kafka.publish_failed',
      status: 'Failed',
      actor: 'token#1',
      output: { topic: service.retry, why: 'topic_missing', request_id: headers.get('x-request-id') },
    })

    await here.broker.newTopic({ name: service.retry })
    expect((await process(service)).status).toBe(204)
    expect(await here.published(service)).toHaveLength(1)
  })

  it('because the record is too large for the topic', async () => {
    const service = here.service('large')
    await here.die(service, [{ value: { data: 'x'.repeat(1.5 * MEBIBYTE) } }])
    await here.expectPending(service, 1)
    const { status, body } = await process(service)
    expect([status, body?.exception_id, body?.data.reasons]).toEqual([
      409,
      'publishGuardError',
      ['too_large'],
    ])
    await expectFree(service)
    expect(await here.broker.endOffset(service.retry)).toBe(0n)
    expect(await lastRow()).toMatchObject({
      operation: 'kafka.publish_failed',
      output: { why: 'too_large' },
    })
    // What is smaller goes out in its place.
    const [event] = await here.preview(service)
    const override = { topic: 'orders', type_: 'created', key: 'k1', payload: { data: 'x' } }
    const reply = await here.ask(`/kafka/${service.name}/orders`, {
      method: 'POST',
      body: JSON.stringify({ dlq_id: event?.bartleby?.dlq_id, override }),
    })
    expect(reply.status).toBe(200)
    expect(await here.published(service)).toHaveLength(1)
  })
})
