/** Two servers on one store and in one group: records are stored once, and of two who want the same event one gets it. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { TOKEN } from '../world/kafka/http.ts'
import { ask, KafkaServers, type Service } from '../world/kafka/server.ts'
import { sizeOf } from '../world/limits.ts'
import type { ServerHere } from '../world/server.ts'
import { freshPostgres } from '../world/stores.ts'

const PARTITIONS = 4
const BATCH = 100
const BATCHES = sizeOf(12, 90)
const RACES = sizeOf(8, 50)

describeKafka('two servers', () => {
  let here: KafkaServers
  let second: ServerHere
  beforeAll(async () => {
    here = await KafkaServers.open(
      { name: 'postgres', fresh: freshPostgres },
      {
        services: { loaded: { partitions: PARTITIONS }, sent: {}, decided: {}, retried: {} },
        kafka: { preview_limit: 10_000 },
      },
    )
  })
  afterAll(() => here.close())

  const dlqIds = async (service: Service): Promise<string[]> =>
    (await here.preview(service)).map(({ bartleby }) => bartleby?.dlq_id ?? '')

  it('store each record once, in order, while the partitions go from one to the other and back', async () => {
    const service = here.service('loaded')
    let written = 0
    const write = async (batches: number): Promise<void> => {
      for (let batch = 0; batch < batches; batch++) {
        await here.die(
          service,
          Array.from({ length: BATCH }, () => {
            const n = written++
            return { key: `k${n % PARTITIONS}`, value: { n }, partition: n % PARTITIONS }
          }),
        )
      }
    }
    const third = BATCHES / 3
    await write(third)
    const joined = here.another()
    await write(third)
    second = await joined
    await expect.poll(() => here.broker.members(here.group)).toBe(2)
    const writing = write(third)
    await here.stop()
    await writing
    await here.start()
    await expect.poll(() => here.broker.members(here.group)).toBe(2)
    await expect.poll(() => here.pending(service)).toBe(written)
    for (let partition = 0; partition < PARTITIONS; partition++) await here.expectNoLag(service, partition)
    const events = await here.preview(service)
    const numbers = events.map(({ payload }) => (payload as { n: number }).n)
    expect(new Set(numbers).size).toBe(written)
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const own = numbers.filter((n) => n % PARTITIONS === partition)
      expect(own).toEqual(own.toSorted((a, b) => a - b))
    }
    await here.expectVerified()
  })

  it('let one of two operators process a letter that both name', async () => {
    const service = here.service('sent')
    await here.die(
      service,
      Array.from({ length: RACES }, (_, n) => ({ key: `k${n}`, value: { n } })),
    )
    await here.expectPending(service, RACES)
    for (const id of await dlqIds(service)) {
      const body = JSON.stringify({ dlq_id: id })
      const replies = await Promise.all(
        [here, second].map((server) =>
          ask<{ exception_id?: string }>(server, `/kafka/${service.name}/orders`, { method: 'POST', body }),
        ),
      )
      const statuses = replies.map(({ status }) => status).toSorted((a, b) => a - b)
      expect(statuses[0]).toBe(200)
      // For the other one it is not next any more, or the queue is empty.
      expect([404, 409]).toContain(statuses[1])
      const refusal = replies.find(({ status }) => status !== 200)?.body.exception_id
      expect(['dlqSequenceError', 'emptyDLQError']).toContain(refusal)
    }
    const sent = (await here.published(service)).map(({ value }) => Buffer.from(value ?? []).toString())
    expect(sent).toEqual(Array.from({ length: RACES }, (_, n) => `{"n":${n}}`))
  })

  it('let one of two operators have it, when one processes and the other discards', async () => {
    const service = here.service('decided')
    await here.die(
      service,
      Array.from({ length: RACES }, (_, n) => ({ key: `k${n}`, value: { n } })),
    )
    await here.expectPending(service, RACES)
    let published = 0
    for (const [n, id] of (await dlqIds(service)).entries()) {
      const calls = [
        () => ask(here, `/kafka/${service.name}`, { method: 'POST', headers: { 'if-match': `"${id}"` } }),
        () => ask(second, `/kafka/${id}`, { method: 'DELETE' }),
      ]
      // Each is first half of the time.
      const order = n % 2 === 0 ? calls : calls.toReversed()
      const replies = await Promise.all(order.map((call) => call()))
      const [processed, discarded] = n % 2 === 0 ? replies : replies.toReversed()
      expect(discarded?.status).toBe(204)
      expect([204, 404, 412]).toContain(processed?.status)
      if (processed?.status === 204) published++
      expect(await here.broker.endOffset(service.retry)).toBe(BigInt(published))
      expect(await here.pending(service)).toBe(RACES - n - 1)
    }
  })

  it('let one of two clerks retry a letter of the office, and the other is told', async () => {
    const service = here.service('retried')
    await here.die(service, [{ key: 'k', value: { n: 0 } }])
    await here.expectPending(service, 1)
    const letters = await here.ask<{ data: { items: { rowKey: string }[] } }>(
      `/api/dlq?engine=kafka&originalQueue=${service.name}/orders`,
    )
    const rowKey = encodeURIComponent(letters.body.data.items[0]?.rowKey ?? '')
    const retry = async ({ url }: { readonly url: string }, headers = {}) =>
      (await fetch(`${url}/api/dlq/kafka/${rowKey}/retry`, { method: 'POST', headers })).status
    expect(await retry(here)).toBe(401)
    const replies = await Promise.all(
      [here, second].map((server) => retry(server, { authorization: `Bearer ${TOKEN}` })),
    )
    expect(replies.toSorted((a, b) => a - b)).toEqual([200, 409])
    expect(await here.published(service)).toHaveLength(1)
  })
})
