/**
 * Servers that are killed between two steps, and a broker that is killed under a publish: nothing is lost, nothing is sent twice in
 * silence, and what nobody knows is shown as that until an operator decides.
 */
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { instant } from '../../src/core/clock.ts'
import { SystemClock } from '../../src/core/system-clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import type { RawRecord } from '../../src/sources/kafka/event.ts'
import { lastHeader, shownBytes } from '../../src/sources/kafka/wire/bytes.ts'
import { type KafkaBroker, startBroker } from '../world/kafka/broker.ts'
import { describeOwnBroker } from '../world/kafka/broker-of-run.ts'
import { oldRecord } from '../world/kafka/records.ts'
import { ask, KafkaServers, type PreviewEvent, rawOf, type Service } from '../world/kafka/server.ts'
import { type Topics, topicsAt } from '../world/kafka/topics.ts'
import { type Turnstile, turnstileTo } from '../world/kafka/turnstile.ts'
import { isProof } from '../world/limits.ts'
import { type SpawnedServer, spawnServer } from '../world/server.ts'
import { freshPostgres, freshSqlite } from '../world/stores.ts'

const SQLITE = { name: 'sqlite', fresh: freshSqlite } as const
const POSTGRES = { name: 'postgres', fresh: freshPostgres } as const

const eventIdOf = ({ headers }: RawRecord): string | null =>
  shownBytes(lastHeader(headers, 'event_id') ?? null)

describeOwnBroker('what was interrupted', () => {
  let broker: KafkaBroker
  let turnstile: Turnstile
  let kafka: Topics
  beforeAll(async () => {
    broker = await startBroker({
      advertise: async (port) => {
        turnstile = await turnstileTo(port)
        return turnstile.port
      },
    })
    kafka = topicsAt(broker.bootstrap)
  })
  afterAll(async () => {
    await broker?.dispose()
    await turnstile?.close()
  })

  const victims: SpawnedServer[] = []
  afterEach(async () => {
    turnstile.go()
    await Promise.all(victims.splice(0).map((victim) => victim.kill9()))
  })

  /** A server as users run it, to be killed. */
  const spawned = async (here: KafkaServers): Promise<SpawnedServer> => {
    const victim = await spawnServer({ store: here.storeUrl, config: here.configPath, testApi: false })
    victims.push(victim)
    return victim
  }

  const shown = async (server: { readonly url: string }, { name }: Service): Promise<PreviewEvent[]> => {
    const { status, body } = await ask<PreviewEvent[]>(server, `/kafka/${name}?detail=true`)
    if (status !== 200) throw new Error(`a preview gave ${status}: ${JSON.stringify(body)}`)
    return body
  }

  const process = (server: { readonly url: string }, { name }: Service, query = '') =>
    ask<{ exception_id?: string; data?: Record<string, string> } | null>(server, `/kafka/${name}${query}`, {
      method: 'POST',
    })

  /** Of a letter that nobody knows the end of: it is shown, held, and sent again under the same id when an operator says so. */
  const expectUncertain = async (here: KafkaServers, service: Service): Promise<string> => {
    expect(await shown(here, service)).toMatchObject([{ bartleby: { state: 'uncertain' } }])
    expect(await here.pending(service)).toBe(1)
    const before = (await here.published(service)).length
    const refused = await process(here, service)
    expect([refused.status, refused.body?.exception_id]).toEqual([409, 'uncertainPublishError'])
    expect(await here.published(service)).toHaveLength(before)
    return refused.body?.data?.event_id ?? ''
  }

  it('a server killed when it had stored and not committed stores nothing twice', async () => {
    // Whoever comes after the dead member waits until it is missed.
    const kafkaKeys = { session_timeout_ms: 1_000 }
    const here = await KafkaServers.prepare(SQLITE, {
      services: { svc: {} },
      broker: kafka,
      kafka: kafkaKeys,
    })
    const service = here.service('svc')
    try {
      const victim = await spawned(here)
      const committing = turnstile.stop('offsetCommit', 'request')
      await here.die(service, [{ value: { n: 0 } }, { value: { n: 1 } }, { value: { n: 2 } }])
      await expect.poll(async () => (await shown(victim, service)).length).toBe(3)
      await committing
      await victim.kill9()
      turnstile.drop()
      expect(await kafka.committedOffset(here.group, service.dlq)).toBeNull()

      await here.start()
      await here.expectNoLag(service)
      const payloads = (await here.preview(service)).map(({ payload }) => payload)
      expect(payloads).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }])
      const metrics = await (await fetch(`${here.url}/metrics`)).text()
      expect(metrics).toContain(`bartleby_kafka_records_duplicate_total{topic="${service.dlq}"} 3\n`)
    } finally {
      turnstile.go()
      await here.close()
    }
  })

  it('a server killed after its intent and before the record left leaves it uncertain', async () => {
    const here = await KafkaServers.prepare(SQLITE, { services: { svc: {} }, broker: kafka })
    const service = here.service('svc')
    try {
      await here.die(service, [{ value: { n: 0 } }])
      const victim = await spawned(here)
      await expect.poll(async () => (await shown(victim, service)).length).toBe(1)
      const producing = turnstile.stop('produce', 'request')
      const call = process(victim, service).catch(() => null)
      await producing
      expect(await shown(victim, service)).toMatchObject([{ bartleby: { state: 'publishing' } }])
      await victim.kill9()
      expect(await call).toBeNull()
      turnstile.drop()

      await here.start()
      const eventId = await expectUncertain(here, service)
      expect(await here.published(service)).toEqual([])
      expect((await process(here, service, '?resend=true')).status).toBe(204)
      expect((await here.published(service)).map(eventIdOf)).toEqual([eventId])
      expect(await here.pending(service)).toBe(0)
      const operations = (await here.history()).map(({ operation }) => operation)
      expect(operations).toEqual(['kafka.published', 'kafka.resent', 'kafka.uncertain', 'kafka.received'])
    } finally {
      turnstile.go()
      await here.close()
    }
  })

  it.each([SQLITE, POSTGRES])(
    'a retry that fails before its publish is settled is the same letter on $name',
    async (store) => {
      const here = await KafkaServers.open(store, { services: { svc: {} }, broker: kafka })
      const service = here.service('svc')
      try {
        const correlationId = '9b533dcf-092d-44cd-824a-7ebea58a99bf'
        await here.die(service, [{ value: { n: 0 }, correlationId }])
        await here.expectPending(service, 1)
        const answering = turnstile.stop('produce', 'answer')
        const call = process(here, service)
        await answering
        await expect.poll(async () => (await here.published(service)).length).toBe(1)
        const [sent] = await here.published(service)
        if (sent === undefined) throw new Error('nothing was published')
        // As hexkit 4 and 5 write it: by its place, which the server has not heard yet.
        const { headers } = oldRecord({ ...sent, service: service.name }, { correlationId })
        await kafka.produce(service.dlq, [rawOf({ headers, value: { n: 0 } })])
        await expect
          .poll(async () => (await shown(here, service)).map(({ bartleby }) => bartleby?.attempts))
          .toEqual([2])
        turnstile.go()
        expect((await call).status).toBe(204)
        const [event, ...others] = await shown(here, service)
        expect(others).toEqual([])
        const place = { topic: service.retry, partition: sent.partition, offset: String(sent.offset) }
        expect(event?.bartleby).toMatchObject({ state: 'pending', attempts: 2, chain: [{ sent: place }] })
      } finally {
        turnstile.go()
        await here.close()
      }
    },
  )

  it('a server killed between the acknowledgement and its record leaves it uncertain', async () => {
    const here = await KafkaServers.prepare(POSTGRES, { services: { svc: {} }, broker: kafka })
    const service = here.service('svc')
    const locker = new pg.Client(here.storeUrl)
    try {
      await locker.connect()
      await here.die(service, [{ value: { n: 0 } }])
      const victim = await spawned(here)
      await expect.poll(async () => (await shown(victim, service)).length).toBe(1)
      const producing = turnstile.stop('produce', 'request')
      const call = process(victim, service).catch(() => null)
      await producing
      const leased = new TestClock()
      leased.freeze(instant(new SystemClock().now()))
      // Nobody can settle a letter that is locked.
      await locker.query('BEGIN')
      await locker.query('SELECT id FROM bartleby.letters FOR UPDATE')
      turnstile.go()
      await expect.poll(() => kafka.endOffset(service.retry)).toBe(1n)
      await expect
        .poll(async () => {
          // Here, and not in the databases of others; a renewal of the lease may wait beside it.
          const waiting = `SELECT count(*)::int AS found FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'`
          return (await locker.query<{ found: number }>(waiting)).rows[0]?.found
        })
        .toBeGreaterThan(0)
      await victim.kill9()
      expect(await call).toBeNull()
      await locker.query('ROLLBACK')

      // Another server leaves it alone while the lease lasts, and one to which it has run out says that nobody knows.
      const early = await here.another({ clock: leased })
      expect(await shown(early, service)).toMatchObject([{ bartleby: { state: 'publishing' } }])
      await early.stop()
      const clock = new TestClock()
      clock.freeze(instant(new SystemClock().now() + 60_000_000n))
      await here.start({ clock })
      const eventId = await expectUncertain(here, service)
      const [first] = await here.published(service)
      expect((await process(here, service, '?resend=true')).status).toBe(204)
      const copies = await here.published(service)
      expect(copies.map(eventIdOf)).toEqual([eventId, eventId])
      const bytes = copies.map(({ key, value, headers }) => ({ key, value, headers }))
      expect(bytes[1]).toEqual({ key: first?.key, value: first?.value, headers: first?.headers })
    } finally {
      turnstile.go()
      await locker.end()
      await here.close()
    }
  })

  it('what comes back dead before its answer does is the same letter, and the answer its receipt', async () => {
    const here = await KafkaServers.open(POSTGRES, { services: { svc: {} }, broker: kafka })
    const service = here.service('svc')
    try {
      await here.die(service, [{ value: { n: 0 }, excMsg: 'first' }])
      await here.expectPending(service, 1)
      const producing = turnstile.stop('produce', 'answer')
      const call = process(here, service)
      await producing
      await expect.poll(() => kafka.endOffset(service.retry)).toBe(1n)
      const [sent] = await here.published(service)
      const minted = sent === undefined ? null : eventIdOf(sent)
      await here.die(service, [{ value: { n: 0 }, excMsg: 'second', originalEventId: minted }])
      await expect.poll(async () => (await here.preview(service))[0]?.bartleby?.attempts).toBe(2)
      turnstile.go()
      expect((await call).status).toBe(204)
      expect(await here.preview(service)).toMatchObject([
        {
          headers: { exc_msg: 'second' },
          bartleby: {
            state: 'pending',
            chain: [
              {
                exc_msg: 'first',
                sent: { event_id: minted, outcome: 'published', partition: 0, offset: '0' },
              },
            ],
          },
        },
      ])
    } finally {
      turnstile.go()
      await here.close()
    }
  })

  it.runIf(isProof)(
    'a broker killed under a publish leaves it uncertain, and certain what it never got',
    async () => {
      const here = await KafkaServers.open(SQLITE, {
        services: { sent: {}, unsent: {} },
        kafka: { publish_timeout_ms: 1_000 },
        broker: kafka,
      })
      const [sent, unsent] = [here.service('sent'), here.service('unsent')]
      try {
        await here.die(sent, [{ value: { n: 0 }, excMsg: 'first' }])
        await here.die(unsent, [{ value: { n: 1 } }])
        await here.expectPending(sent, 1)
        await here.expectPending(unsent, 1)
        const producing = turnstile.stop('produce', 'answer')
        const call = process(here, sent)
        await producing
        await expect.poll(() => kafka.endOffset(sent.retry)).toBe(1n)
        await broker.kill()
        const away = [503, 'kafkaUnavailableError']
        const { status, body, headers } = await call
        expect([status, body?.exception_id]).toEqual(away)
        expect(headers.get('retry-after')).toMatch(/^\d+$/)
        const other = await process(here, unsent)
        expect([other.status, other.body?.exception_id]).toEqual(away)
        expect(await here.preview(unsent)).toMatchObject([{ bartleby: { state: 'pending' } }])
        expect(await here.preview(sent)).toMatchObject([{ bartleby: { state: 'uncertain' } }])
        const ready = async () => (await here.ask('/health/ready')).body
        await expect.poll(ready).toEqual({ status: 'pass', degraded: ['kafka'] })

        turnstile.go()
        await broker.start()
        expect((await process(here, unsent)).status).toBe(204)
        const eventId = await expectUncertain(here, sent)
        expect((await here.published(sent)).map(eventIdOf)).toEqual([eventId])
        // It did arrive: its service fails at it, and that settles the question.
        await here.die(sent, [{ value: { n: 0 }, excMsg: 'second', originalEventId: eventId }])
        await expect.poll(async () => (await here.preview(sent))[0]?.bartleby?.attempts).toBe(2)
        expect(await here.preview(sent)).toMatchObject([
          { bartleby: { state: 'pending', chain: [{ sent: { event_id: eventId, outcome: 'published' } }] } },
        ])
        expect((await process(here, sent)).status).toBe(204)
        expect(await here.published(sent)).toHaveLength(2)
        await expect.poll(ready).toEqual({ status: 'pass' })
      } finally {
        turnstile.go()
        await here.close()
      }
    },
  )
})
