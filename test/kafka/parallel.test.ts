/** Many operators at once: every call resolves one event, in order, and none is published twice. */
import { expect, it } from 'vitest'
import { describeKafka } from '../world/kafka.ts'
import { stores } from '../world/stores.ts'
import { ask, pending, ServedKafka } from './served.ts'

const LETTERS = 20
const CALLS = 50

describeKafka('calls at the same time', () => {
  for (const store of stores) {
    const servers = store.name === 'postgres' ? 2 : 1
    it(`${CALLS} POSTs on ${LETTERS} letters publish each once and in order, on ${store.name} with ${servers} server(s)`, async () => {
      const desk = await ServedKafka.open(store)
      try {
        const all = await Promise.all(Array.from({ length: servers }, () => desk.start()))
        await desk.die(Array.from({ length: LETTERS }, (_, n) => ({ key: `k${n % 3}`, value: { n } })))
        const [first] = all
        if (first === undefined) throw new Error('no server runs')
        await expect.poll(() => pending(first)).toBe(LETTERS)
        const replies = await Promise.all(
          Array.from({ length: CALLS }, async (_, call) => {
            const server = all[call % servers] ?? first
            return (await ask(server, `/kafka/${desk.service}`, { method: 'POST' })).status
          }),
        )
        expect(replies.filter((status) => status === 204)).toHaveLength(LETTERS)
        expect(replies.filter((status) => status === 404)).toHaveLength(CALLS - LETTERS)
        const published = await desk.broker.readTopic(desk.retry)
        expect(published.map(({ value }) => JSON.parse(Buffer.from(value ?? []).toString()).n)).toEqual(
          Array.from({ length: LETTERS }, (_, n) => n),
        )
        expect(await pending(first)).toBe(0)
      } finally {
        await desk.close()
      }
    })
  }
})
