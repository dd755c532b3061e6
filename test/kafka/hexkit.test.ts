/**
 * The judge: a real hexkit service. It must consume whatever is published for it, never crash on it and never ignore it; and what it
 * fails at again is the same letter. Needs a Python with `hexkit[akafka]` of any generation from 4 on, which BARTLEBY_HEXKIT_PYTHON names.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { KafkaServers, type Service } from '../world/kafka/server.ts'
import { newName } from '../world/kafka/topics.ts'
import { freshSqlite } from '../world/stores.ts'

const python = process.env.BARTLEBY_HEXKIT_PYTHON
const SERVICE = fileURLToPath(new URL('hexkit/service.py', import.meta.url))

/** What the service said of an event. */
interface Consumed {
  readonly topic: string
  readonly type: string
  readonly key: string
  readonly id: string
  /** As Python writes what it read. */
  readonly payload: string
}

/** In the layout of hexkit, so that Python writes it again as it was. */
const VALUES = [
  '{"a": 1}',
  '{}',
  '[1, 2]',
  '"text"',
  'null',
  '{"big": 12345678901234567890, "f": 1.0, "tiny": 1e-07}',
  '{"a": NaN, "b": Infinity, "c": -Infinity}',
  '{"nul": "x\\u0000y", "lone": "\\ud800", "mail": "\\ud83d\\udce8", "name": "J\\u00fcrgen"}',
]

const judged = python === undefined ? describe.skip : describe

judged('a hexkit service', () => {
  describeKafka('as the judge', () => {
    let here: KafkaServers
    let service: Service
    let child: ChildProcess
    const generation = python === undefined ? 0 : generationOf(python)
    const [topic, other] = [newName('orders'), newName('users')]
    const consumed: Consumed[] = []
    const complaints: string[] = []
    beforeAll(async () => {
      const retry = (name: string) => (generation < 5 ? `${name}-retry` : `retry-${name}`)
      here = await KafkaServers.prepare(
        { name: 'sqlite', fresh: freshSqlite },
        { services: { judge: { retry } } },
      )
      service = here.service('judge')
      for (const name of [topic, other]) await here.broker.newTopic({ name })
      child = spawn(python ?? '', [SERVICE], {
        env: {
          SERVERS: here.broker.bootstrap,
          SERVICE: service.name,
          TOPICS: `${topic},${other}`,
          DLQ_TOPIC: service.dlq,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      if (child.stdout === null || child.stderr === null) throw new Error('the service has no output')
      createInterface({ input: child.stdout }).on('line', (line) => consumed.push(JSON.parse(line)))
      createInterface({ input: child.stderr }).on('line', (line) => complaints.push(line))
      await here.start()
    })
    afterAll(async () => {
      if (child.exitCode === null) {
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
      await here.close()
    })

    const alive = (): string => (child.exitCode === null ? 'alive' : complaints.slice(-20).join('\n'))
    const expectConsumed = async (count: number): Promise<void> => {
      await expect.poll(() => [alive(), consumed.length]).toEqual(['alive', count])
    }
    const expectDead = (attempts: number): Promise<void> =>
      expect.poll(async () => (await here.preview(service))[0]?.bartleby?.attempts).toBe(attempts)

    it('gets its event back, fails again, and it is the same letter until it succeeds', async () => {
      const headers = [
        ['type', 'created'],
        ['event_id', randomUUID()],
        ['correlation_id', randomUUID()],
      ] as const
      await here.broker.produce(topic, [{ key: 'bad', value: VALUES[5] ?? '', headers }])
      await expectDead(1)
      expect(await here.preview(service)).toMatchObject([
        {
          headers: { original_topic: topic, exc_class: 'ValueError', exc_msg: 'the key is bad' },
          bartleby: { reasons: [], warnings: [], family: 'hexkit' },
        },
      ])
      expect((await here.ask(`/kafka/${service.name}`, { method: 'POST' })).status).toBe(204)
      await expectDead(2)
      const [event] = await here.preview(service)
      const override = { topic: other, type_: 'changed', key: 'good', payload: { name: 'Jürgen 📨' } }
      const body = JSON.stringify({ dlq_id: event?.bartleby?.dlq_id, override })
      expect((await here.ask(`/kafka/${service.name}/${topic}`, { method: 'POST', body })).status).toBe(200)
      await expectConsumed(3)
      expect(consumed).toMatchObject([
        { topic, type: 'created', key: 'bad', payload: VALUES[5] },
        { topic, type: 'created', key: 'bad', payload: VALUES[5] },
        { topic: other, type: 'changed', key: 'good', payload: '{"name": "J\\u00fcrgen \\ud83d\\udce8"}' },
      ])
      expect(await here.pending(service)).toBe(0)
    })

    it('consumes all that is published for it, in order and with every digit', async () => {
      const before = consumed.length
      await here.die(
        service,
        VALUES.map((value, n) => ({ key: n === 0 ? '' : `k${n}`, value, originalTopic: topic })),
      )
      await here.expectPending(service, VALUES.length)
      for (const _ of VALUES)
        expect((await here.ask(`/kafka/${service.name}`, { method: 'POST' })).status).toBe(204)
      await expectConsumed(before + VALUES.length)
      expect(consumed.slice(before).map(({ payload }) => payload)).toEqual(VALUES)
      await expect
        .poll(() => here.broker.committedOffset(service.name, service.retry))
        .toBe(await here.broker.endOffset(service.retry))
      expect(alive()).toBe('alive')
      if (generation < 6) return
      const ids = (await here.published(service)).map(({ headers }) => String(headers[2]?.value))
      expect(new Set(ids).size).toBe(ids.length)
      expect(consumed.slice(before).map(({ id }) => id)).toEqual(ids.slice(-VALUES.length))
    })
  })
})

/** The first number of its version. */
function generationOf(interpreter: string): number {
  const asked = 'import importlib.metadata as m; print(m.version("hexkit").split(".")[0])'
  return Number(execFileSync(interpreter, ['-c', asked], { encoding: 'utf8' }))
}
