/** Records of random bytes: as many letters as records, nothing is left behind, and everything can be looked at. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import type { PreviewEvent } from '../world/kafka/server.ts'
import { KafkaServers } from '../world/kafka/server.ts'
import type { TestRecord } from '../world/kafka/topics.ts'
import { sizeOf } from '../world/limits.ts'
import { type Random, seededRandom } from '../world/random.ts'
import { stores } from '../world/stores.ts'

const RECORDS = sizeOf(200, 1_000)
const PARTITIONS = 2

const NAMES = [
  'exc_class',
  'exc_msg',
  'original_topic',
  'original_event_id',
  'service',
  'type',
  'event_id',
  'correlation_id',
  '__connect.errors.topic',
  'kafka_dlt-original-partition',
  'retry_topic-attempts',
]

describeKafka('records of random bytes', () => {
  for (const store of stores) {
    describe(`on ${store.name}`, () => {
      let here: KafkaServers
      beforeAll(async () => {
        const services = {
          hexkit: { partitions: PARTITIONS },
          generic: { keys: { profile: 'generic' }, partitions: PARTITIONS },
        }
        here = await KafkaServers.open(store, { services, kafka: { preview_limit: 2 * RECORDS } })
      })
      afterAll(() => here.close())

      it.each(['hexkit', 'generic'])(
        `become ${RECORDS} letters of ${RECORDS}, for a service of %s`,
        async (called) => {
          const random = seededRandom()
          const seed = `BARTLEBY_TEST_SEED=${random.seed}`
          const service = here.service(called)
          const unresolved = async (): Promise<number> =>
            (await here.pending(service)) + (await here.pending({ name: '~unknown' }))
          const before = await unresolved()
          await here.broker.produce(
            service.dlq,
            Array.from({ length: RECORDS }, () => randomRecord(random)),
          )
          await expect.poll(unresolved, { message: seed }).toBe(before + RECORDS)
          for (let partition = 0; partition < PARTITIONS; partition++)
            await here.expectNoLag(service, partition)

          const ids = new Set<string>()
          for (const name of [service.name, '~unknown']) {
            const { status, body } = await here.ask<PreviewEvent[]>(`/kafka/${name}?detail=true`)
            expect([status, seed]).toEqual([200, seed])
            for (const { bartleby } of body) {
              if (bartleby?.topic === service.dlq) ids.add(bartleby.dlq_id)
            }
          }
          expect([ids.size, seed]).toEqual([RECORDS, seed])
          const [one = ''] = ids
          expect((await here.ask(`/api/kafka/events/${one}`)).status).toBe(200)
          const health = await here.ask<{ status: string }>('/health/ready')
          expect([health.status, seed]).toEqual([200, seed])
        },
      )
    })
  }
})

function randomRecord(random: Random): TestRecord {
  const bytes = (most: number): Buffer =>
    Buffer.from(Array.from({ length: random.whole(0, most) }, () => random.whole(0, 255)))
  const maybe = (most: number): Buffer | null => (random.chance(1 / 6) ? null : bytes(most))
  const name = (): Buffer => {
    const known = NAMES[random.whole(0, 2 * NAMES.length)]
    return known === undefined ? bytes(8) : Buffer.from(known)
  }
  return {
    key: maybe(12),
    value: maybe(40),
    headers: Array.from({ length: random.whole(0, 10) }, () => [name(), maybe(30)] as const),
    partition: random.whole(0, PARTITIONS - 1),
    // Any time that brokers take: none at all, long ago. Few of them: each is sent by itself.
    ...(random.chance(0.05)
      ? { timestampMs: random.chance(0.5) ? -1n : BigInt(random.whole(0, 1_700_000_000_000)) }
      : {}),
  }
}
