/** The vectors of the contract, written to real topics as the bytes that they are, and read back over HTTP. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import type { PreviewEvent } from '../world/kafka/server.ts'
import { KafkaServers, type Service } from '../world/kafka/server.ts'
import { newName, type TestRecord } from '../world/kafka/topics.ts'
import { stores } from '../world/stores.ts'
import { bytesOf, type RecordVector, recordOf, VECTORS } from './vectors.ts'

/** These depend on what else lies in the store; a vector is about one record. */
const OF_NEIGHBOURS = ['duplicate_event_id', 'later_same_key']

const ofItself = (warnings: readonly string[]): string[] =>
  warnings.filter((warning) => !OF_NEIGHBOURS.includes(warning))

const written = (vector: RecordVector): TestRecord => {
  const { key, value, headers, timestampMs } = recordOf(vector)
  return { key, value, headers: headers.map(({ name, value }) => [name, value] as const), timestampMs }
}

interface Detail {
  readonly dlq_id: string
  readonly offset: string
  readonly timestamp: string
  readonly reasons: readonly string[]
  readonly warnings: readonly string[]
}

const detailOf = ({ bartleby }: PreviewEvent): Detail => {
  if (bartleby === undefined) throw new Error('an event without its detail')
  // As the contract has it.
  return bartleby as unknown as Detail
}

/** An event as the office shows it, as far as it is compared. */
interface OfficeEvent {
  readonly family: string | null
  readonly attemptsReported: number | null
  readonly origin: Readonly<Record<string, unknown>>
  readonly exception: Readonly<Record<string, string | undefined>>
}

const utf8 = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString()

describeKafka('the vectors', () => {
  for (const store of stores) {
    describe(`on ${store.name}`, () => {
      let here: KafkaServers
      // The services have the names that the vectors say; topics must have names that nothing else has.
      const tail = newName('vectors')
      beforeAll(async () => {
        here = await KafkaServers.open(store, {
          services: {
            // Two services share the topic, so that the service cannot be told from it.
            svc: { name: 'svc', retry: () => `retry-${tail}` },
            other: { sharesWith: 'svc' },
            hexkit5: { name: 'svchk52f1b', retry: () => `retry-5-${tail}` },
            hexkit4: { name: 'svchk4af34', retry: () => `${tail}-retry` },
            foreign: { keys: { profile: 'generic' } },
            uber: { keys: { profile: 'generic', key_format: 'uber' } },
          },
        })
      })
      afterAll(() => here.close())
      /** Where the records of vectors are found again: by their offsets. */
      const shown = async (service: Pick<Service, 'name'>): Promise<ReadonlyMap<string, PreviewEvent>> =>
        new Map((await here.preview(service)).map((event) => [detailOf(event).offset, event]))

      const taken = async ({ dlq }: Service, vectors: readonly RecordVector[]): Promise<string[]> => {
        const places = await here.broker.produce(dlq, vectors.map(written))
        await here.expectNoLag({ dlq })
        return places.map(({ offset }) => String(offset))
      }

      it('of intake have their reasons, warnings, payloads and values', async () => {
        const svc = here.service('svc')
        const offsets = await taken(svc, VECTORS.intake)
        const known = new Map([...(await shown(svc)), ...(await shown({ name: '~unknown' }))])
        const refused: string[] = []
        for (const [index, vector] of VECTORS.intake.entries()) {
          const event = known.get(offsets[index] ?? '')
          if (event === undefined) throw new Error(`${vector.id} is not there`)
          const { reasons, warnings } = detailOf(event)
          expect({ id: vector.id, reasons, warnings: ofItself(warnings) }).toEqual({
            id: vector.id,
            reasons: vector.reasons,
            warnings: vector.warnings,
          })
          const { type, exc_msg: excMsg, http_payload: payload } = vector.expect ?? {}
          if (type !== undefined) expect(event.type_).toBe(type)
          if (excMsg !== undefined) expect(event.headers.exc_msg).toBe(excMsg)
          if (payload !== undefined) expect(event.payload).toEqual(payload)
          if (reasons.some((reason) => reason.startsWith('value_'))) expect(event.payload).toBeNull()
          if (vector.reasons.includes('service_unknown')) continue

          const { published_value: other } = vector.expect ?? {}
          const before = (await here.published(svc)).length
          const { status, body } = await here.ask<Refusal | null>('/kafka/svc', { method: 'POST' })
          const sent = (await here.published(svc)).slice(before)
          if (vector.reasons.length === 0) {
            expect([vector.id, status, sent.length]).toEqual([vector.id, 204, 1])
            const expected = typeof other === 'string' ? bytesOf(other) : recordOf(vector).value
            expect(utf8(sent[0]?.value)).toBe(utf8(expected))
          } else {
            expect([vector.id, sent]).toEqual([vector.id, []])
            refused.push(`${vector.id}: ${status} ${body?.exception_id} ${body?.data.reasons.join()}`)
            expect((await here.ask('/kafka/svc', { method: 'DELETE' })).status).toBe(204)
          }
        }
        expect(refused).toEqual([
          'value-not-json: 409 publishGuardError value_not_json',
          'value-empty: 409 publishGuardError value_not_json',
          'value-null: 409 publishGuardError value_null',
          // The guard sees what would go out, which consumers take for ASCII.
          'value-not-utf8: 409 publishGuardError value_not_ascii',
          'value-bom: 409 publishGuardError value_not_json',
          'key-null: 409 publishGuardError key_null',
          'key-not-ascii: 409 publishGuardError key_not_ascii',
          'type-missing: 409 publishGuardError type_missing',
          'type-empty: 409 publishGuardError type_missing',
          'original-topic-missing: 409 publishGuardError original_topic_missing',
          'original-topic-is-retry: 400 overrideValidationError original_topic_invalid',
          'correlation-id-invalid: 409 publishGuardError correlation_id_invalid',
        ])
        expect(await here.pending(svc)).toBe(0)
      })

      const hexkit = VECTORS.hexkit_records.filter(({ expect: expected }) => expected !== undefined)
      it.each(hexkit)(
        'of hexkit are stored as they should be: $id',
        async ({ id, expect: wanted, ...vector }) => {
          const service = [here.service('svc'), here.service('hexkit5'), here.service('hexkit4')].find(
            ({ name }) => name === wanted?.service,
          )
          if (service === undefined) throw new Error(`${id} is of no service`)
          await taken(service, [vector])
          const [event] = await here.preview(service)
          if (event === undefined) throw new Error(`${id} is not there`)
          const detail = detailOf(event)
          const path = `/kafka/${service.name}/${wanted?.original_topic}`
          const [stored] = (await here.ask<readonly StoredEvent[]>(path)).body
          expect({ reasons: detail.reasons, warnings: ofItself(detail.warnings) }).toEqual({
            reasons: wanted?.reasons,
            warnings: wanted?.warnings,
          })
          expect(stored).toMatchObject({
            headers: { correlation_id: wanted?.correlation_id },
            topic: wanted?.original_topic,
            type_: wanted?.type,
            key: wanted?.key,
            dlq_info: {
              service: wanted?.service,
              original_event_id: wanted?.original_event_id,
              exc_class: wanted?.exc_class,
              exc_msg: wanted?.exc_msg,
            },
            ...(wanted?.timestamp === undefined ? {} : { timestamp: wanted.timestamp }),
          })

          expect((await here.ask(`/kafka/${service.name}`, { method: 'POST' })).status).toBe(204)
          const sent = (await here.published(service)).at(-1)
          expect(utf8(sent?.value)).toBe(utf8(recordOf(vector).value))
          expect(utf8(sent?.key)).toBe(utf8(recordOf(vector).key))
          const headers = sent?.headers.map(({ name, value }) => [utf8(name), utf8(value)])
          expect(headers).toEqual([
            ['original_topic', wanted?.original_topic],
            ['type', wanted?.type],
            ['event_id', expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-/)],
            ['correlation_id', wanted?.correlation_id],
          ])
        },
      )

      it('of other tools are understood', async () => {
        for (const called of ['foreign', 'uber']) {
          const service = here.service(called)
          const vectors = VECTORS.foreign_headers.filter(
            ({ expect: { requires } }) => (requires !== undefined) === (called === 'uber'),
          )
          const offsets = await taken(service, vectors)
          const events = await shown(service)
          for (const [index, { id, expect: wanted }] of vectors.entries()) {
            const event = events.get(offsets[index] ?? '')
            if (event === undefined) throw new Error(`${id} is not there`)
            const path = `/api/kafka/events/${detailOf(event).dlq_id}`
            const { data } = (await here.ask<{ data: OfficeEvent }>(path)).body
            const facts = factsOf(data)
            const { requires: _, original_key: key, ...told } = wanted
            for (const [name, value] of Object.entries(told))
              expect([id, name, facts[name] ?? null]).toEqual([id, name, value])
            if (typeof key !== 'string') continue
            expect((await here.ask(`/kafka/${service.name}`, { method: 'POST' })).status).toBe(204)
            const [sent] = await here.published(service)
            expect(utf8(sent?.key)).toBe(utf8(bytesOf(key)))
          }
        }
      })
    })
  }
})

interface Refusal {
  readonly exception_id: string
  readonly data: { readonly reasons: readonly string[] }
}

type StoredEvent = Readonly<Record<string, unknown>>

const factsOf = ({ family, origin, exception, attemptsReported }: OfficeEvent): Record<string, unknown> => ({
  family,
  attempts_reported: attemptsReported,
  original_topic: origin.topic,
  original_partition: origin.partition,
  original_offset: numberOf(origin.offset),
  original_timestamp_ms: numberOf(origin.timestampMs),
  original_destination: origin.destination,
  failed_at_ms: numberOf(origin.failedAtMs),
  consumer_group: origin.consumerGroup,
  exc_class: exception.class,
  exc_msg: exception.message,
  stack: exception.stack,
  cause_class: exception.causeClass,
  cause_msg: exception.causeMessage,
})

/** Offsets and times are texts in JSON. */
const numberOf = (text: unknown): number | null => (text === undefined || text === null ? null : Number(text))
