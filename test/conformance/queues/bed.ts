/**
 * What every conformance file stands on: one server per file and store, the clock frozen, and a client that
 * speaks one codec. Test bodies get a `Bed` and are run on both stores and in both codecs.
 */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { Path } from '../../world/messages.ts'
import { type RunningServer, type ServerOptions, startServer } from '../../world/server.ts'
import { type FreshStore, type StoreKind, stores } from '../../world/stores.ts'
import { ms, systemNow, TestClock } from '../../world/time.ts'
import { type Answer, type Codec, codecs, type Json, Wire } from '../../world/wire.ts'

export interface LeasedItem {
  readonly id: string
  readonly attempts: number
  readonly lease_deadline: string
  readonly encoding?: string
  readonly kind?: string
  readonly reference?: string
  readonly bytes?: string
}

export interface Leased {
  readonly queue_name: string
  readonly partition?: number
  readonly items: readonly LeasedItem[]
}

export interface StoredItem {
  readonly id: string
  readonly source_id?: string
  readonly is_leased?: boolean
  readonly lease_deadline: string
  readonly expire_deadline: string
  readonly created_at: string
  readonly attempts?: number
  readonly max_attempts?: number
  readonly reference?: string
  readonly encoding?: string
  readonly kind?: string
  readonly payload?: string
}

export interface PartitionStats {
  readonly partition: number
  readonly total: number
  readonly total_leased: number
  readonly failures: number
  readonly scheduled: number
  readonly average_age: string
  readonly average_leased_age: string
}

export interface Stats {
  readonly produce_waiting: number
  readonly lease_waiting: number
  readonly complete_waiting: number
  readonly in_flight: number
  readonly partitions: readonly PartitionStats[]
}

/** As on the wire: zeros are left out. */
interface StatsReply {
  readonly logicalQueues: readonly (Partial<Omit<Stats, 'partitions'>> & {
    readonly partitions?: readonly (Partial<PartitionStats> &
      Pick<PartitionStats, 'average_age' | 'average_leased_age'>)[]
  })[]
}

export interface Info {
  readonly queue_name: string
  readonly created_at: string
  readonly updated_at: string
  readonly lease_timeout: string
  readonly expire_timeout: string
  readonly namespace: string
  readonly dead_queue?: string
  readonly reference?: string
  readonly max_attempts?: number
  readonly requested_partitions: number
}

/** A long poll that has not been awaited yet. */
export interface PendingLease {
  readonly answer: Promise<Answer>
  /** Closes the connection. */
  abort(): void
}

export const base64 = (text: string): string => Buffer.from(text).toString('base64')
export const textOf = (item: { bytes?: string; payload?: string }): string =>
  Buffer.from(item.bytes ?? item.payload ?? '', 'base64').toString()
export const textsOf = (items: readonly { bytes?: string; payload?: string }[]): string[] => items.map(textOf)
export const idsOf = (items: readonly { id: string }[]): string[] => items.map((item) => item.id)
/** The one element of a list of one. */
export function only<T>(list: readonly T[]): T {
  expect(list).toHaveLength(1)
  return list[0] as T // the line above has checked it
}

let counter = 0
/** A name that no other test of this file uses. */
export const unique = (prefix = 'q'): string => `${prefix}-${process.pid}-${++counter}`

/** What a bed stands on. */
export interface Ground {
  readonly wire: Wire
  readonly place: FreshStore
  readonly clock: TestClock
}

export class Bed {
  readonly store: StoreKind
  readonly codec: Codec
  readonly #server: () => Ground

  constructor(store: StoreKind, codec: Codec, server: () => Ground) {
    this.store = store
    this.codec = codec
    this.#server = server
  }

  get wire(): Wire {
    return this.#server().wire
  }

  get place(): FreshStore {
    return this.#server().place
  }

  get clock(): TestClock {
    return this.#server().clock
  }

  call(path: Path, body: Json, signal?: AbortSignal): Promise<Answer> {
    return this.wire.call(this.codec, path, body, signal)
  }

  /** A call that must succeed. */
  async ok<T>(path: Path, body: Json): Promise<T> {
    const answer = await this.call(path, body)
    expect(answer.status, `${path}: ${answer.body.message}`).toBe(200)
    // The wire has checked the reply against its message; T is that message.
    return answer.body as T
  }

  /** A call that must be refused with exactly this text. */
  async refuses(path: Path, body: Json, text: string, code = 400): Promise<void> {
    const { body: reply } = await this.call(path, body)
    expect(`${reply.code} ${reply.message}`).toBe(`${code} ${text}`)
  }

  /** A call that must be refused with a text that contains this. */
  async refusesWith(path: Path, body: Json, text: string, code = 400): Promise<void> {
    const { body: reply } = await this.call(path, body)
    expect(reply.message).toContain(text)
    expect(reply.code).toBe(code)
  }

  /** Creates a queue and gives its name; what is not given is what most tests need. */
  async queue(settings: Json = {}): Promise<string> {
    const queue_name = unique()
    const defaults = { queue_name, lease_timeout: '1m', expire_timeout: '24h', requested_partitions: 1 }
    const body = { ...defaults, ...settings }
    await this.ok('/v1/queues.create', body)
    return String(body.queue_name)
  }

  info(queue_name: string): Promise<Info> {
    return this.ok('/v1/queues.info', { queue_name })
  }

  async stats(queue_name: string): Promise<Stats> {
    const reply = await this.ok<StatsReply>('/v1/queue.stats', { queue_name })
    const { partitions = [], ...counts } = only(reply.logicalQueues)
    const zero = { partition: 0, total: 0, total_leased: 0, failures: 0, scheduled: 0 }
    // proto3 leaves out zeros; filled in here they read better in tests.
    return {
      produce_waiting: 0,
      lease_waiting: 0,
      complete_waiting: 0,
      in_flight: 0,
      ...counts,
      partitions: partitions.map((each) => ({ ...zero, ...each })),
    }
  }

  /** Produces one item per text, in one request. */
  async produce(queue_name: string, ...texts: string[]): Promise<void> {
    await this.produceItems(
      queue_name,
      texts.map((utf8) => ({ utf8 })),
    )
  }

  async produceItems(queue_name: string, items: Json[]): Promise<void> {
    const reply = await this.ok('/v1/queue.produce', { queue_name, request_timeout: '1m', items })
    expect(reply).toEqual({ code: 200 })
  }

  async lease(queue_name: string, batch_size = 1, settings: Json = {}): Promise<Leased> {
    const client = { client_id: unique('client'), request_timeout: '1m' }
    return this.ok('/v1/queue.lease', { queue_name, batch_size, ...client, ...settings })
  }

  /** Starts a lease without waiting for its answer. */
  startLease(queue_name: string, batch_size = 1, settings: Json = {}): PendingLease {
    const client = { client_id: unique('client'), request_timeout: '10m' }
    const abort = new AbortController()
    const answer = this.call(
      '/v1/queue.lease',
      { queue_name, batch_size, ...client, ...settings },
      abort.signal,
    )
    // Whoever awaits the answer sees the failure; nobody awaits the answer of an aborted lease.
    answer.catch(() => {})
    return { answer, abort: () => abort.abort() }
  }

  /** Starts leases one after another, each waiting in the queue before the next comes. */
  async startLeases(queue_name: string, ...batchSizes: number[]): Promise<PendingLease[]> {
    const before = (await this.stats(queue_name)).lease_waiting
    const pending: PendingLease[] = []
    for (const batch of batchSizes) {
      pending.push(this.startLease(queue_name, batch))
      await this.untilWaiting(queue_name, before + pending.length)
    }
    return pending
  }

  /** Resolves once that many leases wait; fails when it does not come to that. */
  async untilWaiting(queue_name: string, count: number): Promise<void> {
    await until(async () => {
      expect((await this.stats(queue_name)).lease_waiting).toBe(count)
    })
  }

  /** Proves that no item of the queue can be leased now. Takes 21 ms of the server's clock. */
  async nothingToLease(queue_name: string): Promise<void> {
    const lease = this.startLease(queue_name, 1, { request_timeout: '20ms' })
    await Promise.race([lease.answer, this.untilWaiting(queue_name, 1)])
    await this.clock.advance(ms(21))
    expect((await lease.answer).body).toEqual({
      code: 454,
      code_text: 'Retry Request',
      message: 'request timeout; no items are in the queue, try again',
    })
  }

  async complete(queue_name: string, ids: string[], partition = 0): Promise<void> {
    const reply = await this.ok('/v1/queue.complete', { queue_name, partition, request_timeout: '1m', ids })
    expect(reply).toEqual({ code: 200 })
  }

  async retry(queue_name: string, items: Json[], partition = 0): Promise<void> {
    expect(await this.ok('/v1/queue.retry', { queue_name, partition, items })).toEqual({ code: 200 })
  }

  async items(queue_name: string, partition = 0, page: Json = {}): Promise<StoredItem[]> {
    const body = { queue_name, partition, ...page }
    return (await this.ok<{ items?: StoredItem[] }>('/v1/storage/items.list', body)).items ?? []
  }

  async scheduled(queue_name: string, partition = 0, page: Json = {}): Promise<StoredItem[]> {
    const body = { queue_name, partition, ...page }
    return (await this.ok<{ items?: StoredItem[] }>('/v1/storage/scheduled.list', body)).items ?? []
  }

  async import(queue_name: string, items: Json[], partition = 0): Promise<StoredItem[]> {
    const body = { queue_name, partition, items }
    return (await this.ok<{ items: StoredItem[] }>('/v1/storage/items.import', body)).items
  }

  async pause(queue_name: string, pause = true): Promise<void> {
    const answer = await this.wire.control('/v1/queue.pause', { queue_name, pause })
    expect(answer).toEqual({ status: 200, body: { code: 200 } })
  }

  unpause(queue_name: string): Promise<void> {
    return this.pause(queue_name, false)
  }
}

/** Asks again until `holds` no longer throws; for things that other connections bring about. */
export async function until(holds: () => Promise<void>, limitMs = 3_000): Promise<void> {
  const end = performance.now() + limitMs
  for (;;) {
    try {
      return await holds()
    } catch (error) {
      if (performance.now() > end) throw error
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
}

export interface BedOptions {
  /** Left out: JSON and protobuf. */
  readonly codecs?: readonly Codec[]
  /** Left out: the clock stands still at the present until a test moves it. */
  readonly liveClock?: boolean
  /** Settings of the queues that differ from the defaults. */
  readonly queues?: ServerOptions['queues']
}

interface Running extends Ground {
  readonly server: RunningServer
}

/** The servers of the present test file; a start takes longer than most tests. */
const running = new Map<string, Promise<Running>>()

async function start(store: StoreKind, options: BedOptions): Promise<Running> {
  const place = await store.fresh()
  const server = await startServer({
    store: place.url,
    ...(options.queues ? { queues: options.queues } : {}),
  })
  const wire = new Wire(server.url)
  const clock = new TestClock(() => wire)
  if (!options.liveClock) await clock.freeze(systemNow())
  return { wire, place, server, clock }
}

async function stopAll(): Promise<void> {
  const started = [...running.values()]
  running.clear()
  for (const each of started) {
    const { wire, server, place } = await each
    await wire.close()
    await server.stop()
    await place.dispose()
  }
}

/** The same promises on every store, in every codec. Calls of one file share a server when their options agree. */
export function promises(title: string, body: (bed: Bed) => void, options: BedOptions = {}): void {
  afterAll(stopAll)

  describe.each(stores)(`${title} on $name`, (store) => {
    let mine: Running | undefined
    const current = () => {
      if (mine === undefined) throw new Error('the server has not started')
      return mine
    }

    beforeAll(async () => {
      const key = JSON.stringify([store.name, options.liveClock, options.queues])
      const server = running.get(key) ?? start(store, options)
      running.set(key, server)
      mine = await server
    })

    describe.each(options.codecs ?? codecs)('in $name', (codec) => body(new Bed(store, codec, current)))
  })
}
