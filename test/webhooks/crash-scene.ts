/**
 * Servers on one store, one of which comes to harm, and a receiver whose answers wait until a test gives them. Time stands still,
 * for each server by itself, until a test waits for something at one of them: no machine is too slow for this.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import type { Database } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import { PATIENCE_MS } from '../world/limits.ts'
import { type Answer, Receiver } from '../world/receiver.ts'
import {
  type RunningServer,
  type ServerHere,
  type SpawnedServer,
  spawnServer,
  startServer,
} from '../world/server.ts'
import type { FreshStore, StoreKind } from '../world/stores.ts'
import { bartleby } from '../world/terminal-double.ts'
import { rfc3339, systemNow } from '../world/time.ts'
import { WebhookClient } from '../world/webhooks/client.ts'
import { jobsIn } from '../world/webhooks/rows.ts'

const DELIVERY = {
  // Two attempts at a time, one of each consumer: what comes third waits.
  workers: 2,
  maxRetry: 5,
  backoffSeconds: [1],
  rationalDelaySeconds: 1,
  timeoutSeconds: 2,
  breaker: { failures: 0 },
}
const SENDER = {
  'X-Broker-Channel-Token': 'ctok',
  'X-Broker-Producer-ID': 'shop',
  'X-Broker-Producer-Token': 'ptok',
}
const SIDES = ['left', 'right'] as const
const STEP_US = 500_000n

/** By the id of its message: its state, and how often it was tried again. */
type Jobs = Readonly<Record<string, readonly [state: number, attempts: number]>>

interface Waiting {
  readonly messageId: string
  readonly answer: (answer: Answer) => void
}

export class Scene {
  readonly place: FreshStore
  readonly receiver: Receiver
  readonly #db: Database
  readonly #folder: string
  readonly #startAt = instant(systemNow())
  readonly #waiting: Waiting[] = []
  readonly #servers: RunningServer[] = []
  readonly #clients: WebhookClient[] = []
  /** Of the server that was started last. */
  #clock: TestClock | null = null
  #isOpen = false

  private constructor(place: FreshStore, receiver: Receiver, folder: string) {
    this.place = place
    this.receiver = receiver
    this.#db = openDatabase(place.url, { poolSize: 2 })
    this.#folder = folder
    for (const side of SIDES)
      receiver.answer(`/${side}`, ({ headers }) => this.#answerOf(headers['x-broker-message-id'] ?? ''))
  }

  static async set(kind: StoreKind): Promise<Scene> {
    const folder = await mkdtemp(join(tmpdir(), 'bartleby-scene-'))
    return new Scene(await kind.fresh(), await Receiver.start(), folder)
  }

  /** A server in a process of its own, to be killed. */
  async spawn(name: string): Promise<SpawnedServer> {
    const config = join(this.#folder, `${name}.yaml`)
    // JSON is YAML.
    await writeFile(config, JSON.stringify({ webhooks: { delivery: { ...DELIVERY, userAgent: name } } }))
    const server = await spawnServer({ store: this.place.url, config })
    this.#servers.push({ ...server, stop: () => server.kill9() })
    const freeze = JSON.stringify({ freeze: rfc3339(this.#startAt) })
    const headers = { 'Content-Type': 'application/json' }
    expect((await this.client(server).post('/v1/test.clock', freeze, headers)).status).toBe(200)
    return server
  }

  /** A server in this process. */
  async start(name: string): Promise<ServerHere> {
    const clock = new TestClock()
    clock.freeze(this.#startAt)
    const webhooks = { delivery: { ...DELIVERY, userAgent: name } }
    const server = await startServer({ store: this.place.url, clock, webhooks })
    this.#servers.push(server)
    this.#clock = clock
    return server
  }

  client({ url }: RunningServer): WebhookClient {
    const client = new WebhookClient(url)
    this.#clients.push(client)
    return client
  }

  async register(client: WebhookClient): Promise<void> {
    await client.put('/producer/shop', { token: 'ptok' })
    for (const side of SIDES) {
      await client.put(`/channel/${side}`, { token: 'ctok' })
      const form = { callbackUrl: `${this.receiver.url}/${side}` }
      expect((await client.put(`/channel/${side}/consumer/${side}`, form)).status).toBe(200)
    }
  }

  async broadcast(client: WebhookClient, side: (typeof SIDES)[number], messageId: string): Promise<void> {
    const headers = { ...SENDER, 'X-Broker-Message-ID': messageId }
    const { status } = await client.post(`/channel/${side}/broadcast`, `bytes of ${messageId}`, headers)
    expect(status).toBe(201)
  }

  /** Lets time pass at the server that was started last until a message is called for the n-th time; the call is left open. */
  async called(messageId: string, nth = 1): Promise<void> {
    await this.#pass(() => expect(this.callsOf(messageId)).toHaveLength(nth), nth > 1)
  }

  /** The servers that called with this message. */
  callsOf(messageId: string): readonly string[] {
    const calls = this.receiver.requests.filter(({ headers }) => headers['x-broker-message-id'] === messageId)
    for (const { body } of calls) expect(body.toString()).toBe(`bytes of ${messageId}`)
    return calls.map(({ headers }) => headers['user-agent'] ?? '')
  }

  /** Answers the n-th call with a message. */
  answer(messageId: string, status = 204, nth = 1): void {
    const calls = this.#waiting.filter((call) => call.messageId === messageId)
    calls[nth - 1]?.answer({ status })
  }

  /** From now on every call is answered at once. */
  answerAll(): void {
    this.#isOpen = true
  }

  async jobs(): Promise<Jobs> {
    const jobs = await jobsIn(this.#db)
    return Object.fromEntries(jobs.map(({ messageId, state, attempts }) => [messageId, [state, attempts]]))
  }

  /** Lets time pass at the server that was started last until the jobs are like this. */
  async until(jobs: Jobs): Promise<void> {
    await this.#pass(async () => expect(await this.jobs()).toEqual(jobs), true)
  }

  async expectVerified(): Promise<void> {
    expect(await bartleby(['verify', '--store', this.place.url])).toMatchObject({ code: 0 })
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.close()
    for (const { answer } of this.#waiting) answer({ status: 204 })
    await Promise.all(this.#servers.map((server) => server.stop()))
    await this.receiver.close()
    await this.#db.close()
    await this.place.dispose()
    await rm(this.#folder, { recursive: true })
  }

  #answerOf(messageId: string): Answer | Promise<Answer> {
    if (this.#isOpen) return { status: 204 }
    const { promise, resolve } = Promise.withResolvers<Answer>()
    this.#waiting.push({ messageId, answer: resolve })
    return promise
  }

  /** Asks until it is so. Time passes only while no call comes or ends: none runs out of it while it could go on. */
  #pass(isSo: () => void | Promise<void>, timePasses: boolean): Promise<void> {
    const ask = async () => {
      const { open } = this.receiver
      try {
        await isSo()
      } catch (error) {
        if (timePasses && open === this.receiver.open) this.#clock?.advance(STEP_US)
        throw error
      }
    }
    return vi.waitFor(ask, { timeout: PATIENCE_MS, interval: 20 })
  }
}
