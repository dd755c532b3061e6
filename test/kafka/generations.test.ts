/** The generations of hexkit: each has its own retry topic, and what fails again is the same letter, by id or by place. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lastHeader, shownBytes } from '../../src/sources/kafka/wire/bytes.ts'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { oldRecord } from '../world/kafka/records.ts'
import { KafkaServers, rawOf, type Service } from '../world/kafka/server.ts'
import { newName } from '../world/kafka/topics.ts'
import { stores } from '../world/stores.ts'

/** Where an event was when its service failed at it. */
interface ReadAt {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  /** The id of the record there; services of old generations do not tell it. */
  readonly eventId: string
}

type Fails = (here: KafkaServers, service: Service, at: ReadAt, excMsg: string) => Promise<unknown>

/** Generations 4 and 5 look the same: they say where the event was. */
const failsByPlace: Fails = (here, { name, dlq }, at, excMsg) => {
  const { headers } = oldRecord({ service: name, ...at }, { excMsg, correlationId: CORRELATION })
  return here.broker.produce(dlq, [rawOf({ headers, value: VALUE })])
}

const failsById: Fails = (here, service, { eventId }, excMsg) =>
  here.die(service, [{ originalEventId: eventId, excMsg, value: VALUE, correlationId: CORRELATION }])

/** As the DLQ was designed first: the dead record keeps the id of the one that failed. */
const failsUnderItsId: Fails = (here, service, { eventId }, excMsg) =>
  here.die(service, [{ eventId, originalEventId: null, excMsg, value: VALUE, correlationId: CORRELATION }])

const VALUE = '{"big": 12345678901234567890}'
const CORRELATION = '9b533dcf-092d-44cd-824a-7ebea58a99bf'

const GENERATIONS = [
  { called: 'four', fails: failsByPlace, retryOf: (service: string) => `${service}-retry` },
  { called: 'five', fails: failsByPlace, retryOf: (service: string) => `retry-${service}` },
  { called: 'six', fails: failsById, retryOf: (service: string) => `retry-${service}` },
  { called: 'none yet', fails: failsUnderItsId, retryOf: (service: string) => `retry-${service}` },
] as const

describeKafka('a service of hexkit', () => {
  for (const store of stores) {
    describe(`on ${store.name}`, () => {
      let here: KafkaServers
      beforeAll(async () => {
        // The default is where generations from 5 on read; 4 must be told.
        const byDefault = { keys: { retry_topic: undefined } }
        here = await KafkaServers.open(store, {
          services: {
            four: { retry: (service) => `${service}-retry`, partitions: 3 },
            five: { ...byDefault, partitions: 3 },
            six: { ...byDefault, partitions: 3 },
            'none yet': { ...byDefault, name: newName('design'), partitions: 3 },
          },
        })
      })
      afterAll(() => here.close())

      it.each(GENERATIONS)(
        'of generation $called gets its event back, fails again, and it is the same letter',
        async ({ called, fails, retryOf }) => {
          const service = here.service(called)
          expect(service.retry).toBe(retryOf(service.name))
          const original = { topic: 'orders', partition: 2, offset: 17n, eventId: CORRELATION }
          await fails(here, service, original, 'death 1')
          const ids = new Set<string>()
          for (let death = 1; death <= 3; death++) {
            await here.expectPending(service, 1)
            const [event] = await here.preview(service)
            expect(event).toMatchObject({
              headers: { exc_msg: `death ${death}`, original_topic: 'orders' },
              bartleby: { attempts: death, state: 'pending', reasons: [], warnings: [] },
            })
            expect(event?.bartleby?.chain.map(({ exc_msg: excMsg }) => excMsg)).toEqual(
              Array.from({ length: death - 1 }, (_, n) => `death ${n + 1}`),
            )
            ids.add(event?.bartleby?.dlq_id ?? '')

            expect((await here.ask(`/kafka/${service.name}`, { method: 'POST' })).status).toBe(204)
            const sent = (await here.published(service)).at(-1)
            if (sent === undefined) throw new Error('nothing was published')
            expect(await here.published(service)).toHaveLength(death)
            expect(Buffer.from(sent.value ?? []).toString()).toBe(VALUE)
            const eventId = shownBytes(lastHeader(sent.headers, 'event_id') ?? null) ?? ''
            const { topic, partition, offset } = sent
            expect(topic).toBe(service.retry)
            if (death < 3)
              await fails(here, service, { topic, partition, offset, eventId }, `death ${death + 1}`)
          }
          expect(ids.size).toBe(3)
          expect(await here.pending(service)).toBe(0)
          const letters = await here.ask<{ data: { items: unknown[] } }>(
            `/api/dlq?engine=kafka&originalQueue=${service.name}/orders`,
          )
          expect(letters.body.data.items).toHaveLength(1)
          // An id that is spent does nothing.
          const [spent = ''] = ids
          expect((await here.ask(`/kafka/${spent}`, { method: 'DELETE' })).status).toBe(204)
        },
      )

      it('that fails twice at one record has a second letter, with a warning', async () => {
        const service = here.service('six')
        const [sent] = await here.published(service)
        const minted = shownBytes(lastHeader(sent?.headers ?? [], 'event_id') ?? null)
        await here.die(service, [{ originalEventId: minted }])
        await here.expectPending(service, 1)
        expect(await here.preview(service)).toMatchObject([
          { bartleby: { attempts: 1, warnings: expect.arrayContaining(['duplicate_retry']) } },
        ])
      })
    })
  }
})
