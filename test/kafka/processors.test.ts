/** Code of users decides about real events: what a rehearsal shows is what comes, and it leaves everything as it was. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { KafkaServers, type Service } from '../world/kafka/server.ts'
import { stores } from '../world/stores.ts'

/** What it does is said by the type of the event. */
const MODULE = `
export default (event, { log }) => {
  log('asked')
  switch (event.type) {
    case 'change': return { action: 'publish', change: { topic: 'users', key: 'other', payload: { big: 12345678901234567890n, was: event.payload } } }
    case 'discard': return { action: 'discard', reason: 'nobody needs it' }
    case 'throw': throw new Error('it threw')
    case 'reject': return Promise.reject(new Error('it rejected'))
    case 'nothing': return undefined
    case 'loop': for (;;);
    case 'exit': process.exit(1)
    case 'break': return { action: 'publish', change: { correlationId: 'no uuid' } }
  }
}
`

const TYPES = ['change', 'discard', 'throw', 'reject', 'nothing', 'loop', 'exit', 'break'] as const

const ANSWERS: Readonly<
  Record<(typeof TYPES)[number], readonly [dryRun: number, process: number, id: string | null]>
> = {
  change: [200, 204, null],
  discard: [200, 204, null],
  throw: [500, 500, 'processingError'],
  reject: [500, 500, 'processingError'],
  nothing: [500, 500, 'processingError'],
  loop: [504, 504, 'processingTimeoutError'],
  exit: [500, 500, 'processingError'],
  break: [409, 409, 'publishGuardError'],
}

const TABLES = ['letters', 'history', 'kafka_events', 'kafka_records', 'kafka_sends', 'kafka_chain', 'kafka_services', 'kafka_partitions'] // biome-ignore format: a list
const dumps = TABLES.map((table) =>
  sql(`test.kafka.dump.${table}`, `SELECT * FROM bartleby.${table}`, { bigints: true }),
)

interface Refusal {
  readonly exception_id: string
}

describeKafka('a processor', () => {
  for (const store of stores) {
    describe(`on ${store.name}`, () => {
      let here: KafkaServers
      beforeAll(async () => {
        here = await KafkaServers.open(store, {
          services: Object.fromEntries(TYPES.map((type) => [type, {}])),
          kafka: { processors: [{ module: './decide.mjs' }], processor_timeout_ms: 1_000 },
          files: { 'decide.mjs': MODULE },
        })
      })
      afterAll(() => here.close())

      const dump = async (): Promise<string> => {
        const db = openDatabase(here.storeUrl, { poolSize: 1 })
        try {
          const tables = await db.session('test.kafka.dump', async (session) => {
            const all: unknown[] = []
            for (const statement of dumps) all.push(await session.rows(statement))
            return all
          })
          return JSON.stringify(tables, (_, value) => (typeof value === 'bigint' ? String(value) : value))
        } finally {
          await db.close()
        }
      }

      const ends = async ({ dlq, retry }: Service) => [
        await here.broker.endOffset(dlq),
        await here.broker.endOffset(retry),
        await here.broker.committedOffset(here.group, dlq),
      ]

      // How it fails is the same everywhere; what is written then is up to the store.
      const types = store.name === 'sqlite' ? TYPES : TYPES.slice(0, 3)
      it.each(types)(
        'that decides to %s does so when it is asked in earnest, and changes nothing before',
        async (type) => {
          const service = here.service(type)
          await here.die(service, [{ type, value: { n: 1 } }])
          await here.expectPending(service, 1)
          await here.expectNoLag(service)
          const [before, endsBefore] = [await dump(), await ends(service)]
          const rehearsal = await here.ask<Refusal | null>(`/kafka/rpc/dry-run/${service.name}`)
          expect(await ends(service)).toEqual(endsBefore)
          expect((await dump()) === before).toBe(true)

          const done = await here.ask<Refusal | null>(`/kafka/${service.name}`, { method: 'POST' })
          const [dryRun, process, id] = ANSWERS[type]
          expect([rehearsal.status, done.status]).toEqual([dryRun, process])
          const sent = await here.published(service)
          if (id !== null) {
            expect([rehearsal.body?.exception_id, done.body?.exception_id]).toEqual([id, id])
            expect(sent).toEqual([])
            expect(await here.preview(service)).toMatchObject([{ bartleby: { state: 'pending' } }])
            const operation = type === 'break' ? 'kafka.refused' : 'kafka.processor_failed'
            expect((await here.history())[0]).toMatchObject({ operation, status: 'Failed' })
            return
          }
          const outcome = type === 'change' ? 'published' : 'discarded'
          for (const { headers } of [rehearsal, done]) expect(headers.get('bartleby-outcome')).toBe(outcome)
          expect(await here.pending(service)).toBe(0)
          if (type === 'discard') {
            expect([rehearsal.body, sent]).toEqual([null, []])
            expect((await here.history())[0]).toMatchObject({ operation: 'kafka.discarded' })
            return
          }
          expect(Buffer.from(sent[0]?.value ?? []).toString()).toBe(
            '{"big": 12345678901234567890, "was": {"n": 1}}',
          )
          expect(rehearsal.body).toMatchObject({
            topic: service.retry,
            type_: 'change',
            key: 'other',
            payload: { was: { n: 1 } },
            headers: { original_topic: 'users' },
          })
          const headers = sent[0]?.headers.map(({ name, value }) => [String(name), String(value)])
          expect(Object.fromEntries(headers ?? [])).toMatchObject({ original_topic: 'users', type: 'change' })
          expect(Buffer.from(sent[0]?.key ?? []).toString()).toBe('other')
        },
      )
    })
  }
})
