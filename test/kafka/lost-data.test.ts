/** Records that are lost, and offsets that point nowhere: intake goes on with what there is; nothing stored is lost, nothing doubles. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { KafkaServers, type Service } from '../world/kafka/server.ts'
import { stores } from '../world/stores.ts'

const SERVICES = { deleted: {}, beyond: {}, anew: {}, added: {} }

describeKafka('lost data', () => {
  for (const store of stores) {
    describe(`on ${store.name}`, () => {
      let here: KafkaServers
      beforeAll(async () => {
        here = await KafkaServers.open(store, { services: SERVICES })
      })
      afterAll(() => here.close())

      let written = 0
      /** Numbers that go on, so that nothing is taken for something else. */
      const die = async (service: Service, count: number): Promise<void> => {
        await here.die(
          service,
          Array.from({ length: count }, () => ({ key: 'k', value: { n: written++ } })),
        )
      }
      const shown = async (service: Service): Promise<unknown[]> =>
        (await here.preview(service)).map(({ payload }) => payload)
      const gapsOf = async ({ dlq }: Service): Promise<unknown[]> =>
        (await here.history('kafka.gap'))
          .map(({ output }) => JSON.parse(output ?? '{}'))
          .filter(({ topic }) => topic === dlq)
      const numbers = (...all: number[]) => all.map((n) => ({ n }))

      it('records that were deleted before they were read leave a gap on record, and nothing else', async () => {
        const service = here.service('deleted')
        const first = written
        await die(service, 3)
        await here.expectPending(service, 3)
        await here.expectNoLag(service)
        await here.stop()
        await die(service, 3)
        await here.broker.deleteRecords(service.dlq, 0, 5n)
        await here.start()
        await here.expectPending(service, 4)
        await here.expectNoLag(service)
        expect(await shown(service)).toEqual(numbers(first, first + 1, first + 2, first + 5))
        expect(await gapsOf(service)).toMatchObject([
          { topic: service.dlq, partition: 0, expected: '3', found: '5' },
        ])
        await die(service, 1)
        await here.expectPending(service, 5)
      })

      it('records that were deleted after they were read are of no interest', async () => {
        const service = here.service('added')
        await die(service, 2)
        await here.expectPending(service, 2)
        await here.expectNoLag(service)
        await here.broker.deleteRecords(service.dlq, 0, 2n)
        await die(service, 1)
        await here.expectPending(service, 3)
        expect(await gapsOf(service)).toEqual([])
      })

      it('an offset behind the end of its topic is followed by the first record there is; known ones are known', async () => {
        const service = here.service('beyond')
        const first = written
        await die(service, 3)
        await here.expectPending(service, 3)
        await here.expectNoLag(service)
        // One of them is resolved: it must not come back.
        expect((await here.ask(`/kafka/${service.name}`, { method: 'POST' })).status).toBe(204)
        await here.stop()
        await here.broker.commitOffset(here.group, service.dlq, 1_000n)
        await die(service, 2)
        await here.start()
        await here.expectPending(service, 4)
        await here.expectNoLag(service)
        expect(await shown(service)).toEqual(numbers(first + 1, first + 2, first + 3, first + 4))
        expect(await gapsOf(service)).toMatchObject([{ partition: 0, expected: '1000', found: '0' }])
        expect(await here.published(service)).toHaveLength(1)
        const metrics = await (await fetch(`${here.url}/metrics`)).text()
        expect(metrics).toContain(`bartleby_kafka_records_received_total{topic="${service.dlq}"} 5\n`)
        expect(metrics).toContain(`bartleby_kafka_records_duplicate_total{topic="${service.dlq}"} 3\n`)
        expect(metrics).toContain(`bartleby_kafka_gaps_total{topic="${service.dlq}",partition="0"} 1\n`)
      })

      it('a topic that was made anew is read from its start, and its records are others', async () => {
        const service = here.service('anew')
        const first = written
        await die(service, 2)
        await here.expectPending(service, 2)
        await here.expectNoLag(service)
        await here.broker.deleteTopic(service.dlq)
        await here.broker.newTopic({ name: service.dlq })
        await die(service, 2)
        await here.expectPending(service, 4)
        expect(await shown(service)).toEqual(numbers(first, first + 1, first + 2, first + 3))
        const reused = (await here.preview(service)).map(({ bartleby }) => bartleby?.warnings)
        expect(reused.slice(2)).toMatchObject([
          expect.arrayContaining(['position_reused']),
          expect.arrayContaining(['position_reused']),
        ])
      })
    })
  }
})
