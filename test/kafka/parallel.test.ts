/** Many operators at once: every call resolves one event, in order, and none is published twice. */
import { expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { ask, KafkaServers, pending } from '../world/kafka/server.ts'
import { stores } from '../world/stores.ts'

const LETTERS = 20
const CALLS = 50

describeKafka('calls at the same time', () => {
  for (const store of stores) {
    const servers = store.name === 'postgres' ? 2 : 1
    it(`${CALLS} POSTs on ${LETTERS} letters publish each once and in order, on ${store.name} with ${servers} server(s)`, async () => {
      const here = await KafkaServers.prepare(store, { services: { svc: {} } })
      const service = here.service('svc')
      try {
        const all = await Promise.all(Array.from({ length: servers }, () => here.spawn()))
        await here.die(
          service,
          Array.from({ length: LETTERS }, (_, n) => ({ key: `k${n % 3}`, value: { n } })),
        )
        const [first] = all
        if (first === undefined) throw new Error('no server runs')
        await expect.poll(() => pending(first, service.name)).toBe(LETTERS)
        const replies = await Promise.all(
          Array.from({ length: CALLS }, async (_, call) => {
            const server = all[call % servers] ?? first
            return (await ask(server, `/kafka/${service.name}`, { method: 'POST' })).status
          }),
        )
        expect(replies.filter((status) => status === 204)).toHaveLength(LETTERS)
        expect(replies.filter((status) => status === 404)).toHaveLength(CALLS - LETTERS)
        const published = await here.broker.readTopic(service.retry)
        expect(published.map(({ value }) => JSON.parse(Buffer.from(value ?? []).toString()).n)).toEqual(
          Array.from({ length: LETTERS }, (_, n) => n),
        )
        expect(await pending(first, service.name)).toBe(0)
      } finally {
        await here.close()
      }
    })
  }
})
