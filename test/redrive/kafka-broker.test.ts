/** A redrive of letters of Kafka as users see it: a server, a real broker, and calls over HTTP. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { KafkaServers } from '../world/kafka/server.ts'
import { freshSqlite } from '../world/stores.ts'

interface Reply {
  readonly data: {
    readonly id: string
    readonly state: string
    readonly counts: Readonly<Record<string, number>>
    readonly destinations: readonly { readonly source: string; readonly name: string }[]
  }
}

describeKafka('a redrive of letters of Kafka', () => {
  let here: KafkaServers
  beforeAll(async () => {
    here = await KafkaServers.open({ name: 'sqlite', fresh: freshSqlite }, { services: { svc: {} } })
  })
  afterAll(() => here?.close())

  const call = async (path: string, body?: object): Promise<Reply['data']> => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
    const reply = await here.ask<Reply>(
      `/api/redrives${path}`,
      body === undefined ? {} : { ...init, body: JSON.stringify(body) },
    )
    expect(reply.status, JSON.stringify(reply.body)).toBeLessThan(300)
    return reply.body.data
  }

  it('publishes them once, in their order, and is named by their history', async () => {
    const service = here.service('svc')
    await here.die(
      service,
      [0, 1, 2].map((n) => ({ key: `k${n}`, value: { n } })),
    )
    await here.expectPending(service, 3)
    const { id, destinations } = await call('', { filter: { engine: 'kafka' }, action: 'retry' })
    expect(destinations).toMatchObject([{ source: 'kafka' }])
    await call(`/${id}/start`, {})
    await expect
      .poll(() => call(`/${id}`))
      .toMatchObject({ state: 'done', counts: { planned: 3, sent: 3, unconfirmed: 3 } })
    const published = await here.published(service)
    expect(published.map(({ value }) => Buffer.from(value ?? []).toString())).toEqual([
      '{"n":0}',
      '{"n":1}',
      '{"n":2}',
    ])
    await here.expectPending(service, 0)
    expect(await here.history('kafka.published')).toMatchObject(
      Array.from({ length: 3 }, () => ({ output: expect.stringContaining(`"redrive":"${id}"`) })),
    )
  })
})
