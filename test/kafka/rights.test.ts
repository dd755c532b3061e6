/** TLS, SCRAM, and no right more than the documentation asks for: everything works; and where one is missing, it is named. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeOwnBroker } from '../world/kafka/broker-of-run.ts'
import { type SecureBroker, startSecureBroker } from '../world/kafka/secure.ts'
import { KafkaServers, type Service } from '../world/kafka/server.ts'
import { newName, topicsAt } from '../world/kafka/topics.ts'
import { ServerLog } from '../world/logs.ts'
import { freshPostgres } from '../world/stores.ts'

const captured = new ServerLog('trace')

describeOwnBroker('the rights that are asked for', () => {
  let broker: SecureBroker
  let here: KafkaServers
  let service: Service
  const group = newName('group')
  beforeAll(async () => {
    broker = await startSecureBroker()
    here = await KafkaServers.prepare(
      { name: 'postgres', fresh: freshPostgres },
      {
        services: { svc: {} },
        broker: topicsAt(broker.bootstrap),
        kafka: {
          servers: [broker.secured],
          security_protocol: 'SASL_SSL',
          ssl_cafile: broker.caFile,
          sasl_mechanism: 'SCRAM-SHA-512',
          sasl_username: broker.username,
          sasl_password: broker.password,
          group_id: group,
        },
        log: captured.log,
      },
    )
    service = here.service('svc')
    await here.die(service, [{ value: { n: 0 } }, { value: { n: 1 } }])
    await here.start()
  })
  afterAll(async () => {
    await here?.close()
    await broker?.dispose()
  })

  const troubles = async (): Promise<string> => {
    const { body } = await here.ask<{ data: { intake: { troubles: readonly string[] } } }>('/api/kafka')
    return body.data.intake.troubles.join(' ')
  }
  const process = () =>
    here.ask<{ exception_id: string; description: string } | null>(`/kafka/${service.name}`, {
      method: 'POST',
    })

  it('are named while they are missing: first to see the topic, then to join the group', async () => {
    await expect.poll(troubles).toContain(`Topic ${service.dlq}`)
    expect(await troubles()).toContain('grant Read and Describe')
    await broker.grant(
      { resource: 'topic', name: service.dlq, operation: 'read' },
      { resource: 'topic', name: service.dlq, operation: 'describe' },
    )
    await expect.poll(troubles).toContain(`grant Read on group ${group}`)
    await broker.grant({ resource: 'group', name: group, operation: 'read' })
    await expect.poll(() => here.pending(service)).toBe(2)
    await expect.poll(troubles).toBe('')
    await expect.poll(() => here.broker.committedOffset(group, service.dlq)).toBe(2n)
  })

  it('are named when an event cannot be published, which is pending then', async () => {
    expect(await here.preview(service)).toMatchObject([{ payload: { n: 0 } }, { payload: { n: 1 } }])
    expect((await here.ask(`/kafka/rpc/dry-run/${service.name}`)).status).toBe(200)
    const { status, body, headers } = await process()
    expect([status, body?.exception_id]).toEqual([503, 'kafkaUnavailableError'])
    expect(headers.get('retry-after')).toMatch(/^\d+$/)
    const right = `grant Write and Describe on topic ${service.retry}`
    expect(body?.description).toContain(right)
    expect(captured.text).toContain(right)
    expect(await here.preview(service)).toMatchObject([{ bartleby: { state: 'pending' } }, {}])
    const [row] = await here.history()
    expect(row).toMatchObject({ operation: 'kafka.publish_failed', error: expect.stringContaining(right) })
  })

  it('are enough, and no other is needed', async () => {
    await broker.grant(
      { resource: 'topic', name: service.retry, operation: 'write' },
      { resource: 'topic', name: service.retry, operation: 'describe' },
    )
    await expect.poll(async () => (await process()).status).toBe(204)
    expect((await here.ask(`/kafka/${service.name}`, { method: 'DELETE' })).status).toBe(204)
    const sent = (await here.published(service)).map(({ value }) => Buffer.from(value ?? []).toString())
    expect(sent).toEqual(['{"n":0}'])
    // Enough for those that still get through when rights are taken back.
    await here.die(
      service,
      Array.from({ length: 10 }, (_, n) => ({ value: { n: n + 2 } })),
    )
    await here.expectPending(service, 10)
    expect((await here.ask('/health/ready')).status).toBe(200)
  })

  it('can be taken back: what is refused from then on is pending', async () => {
    await broker.revoke('topic', service.retry)
    await expect.poll(async () => (await process()).status).toBe(503)
    const [next] = await here.preview(service)
    expect(next).toMatchObject({ bartleby: { state: 'pending' } })
  })

  it('leave no password in the log', () => {
    expect(captured.text).not.toContain(broker.password)
    expect(captured.text.length).toBeGreaterThan(0)
  })
})
