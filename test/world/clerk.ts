/** Short calls for tests with many clients: the office API and the queue API on one wire. */
import { expect } from 'vitest'
import type { Path } from './messages.ts'
import {
  apiCall,
  type Call,
  type Key,
  type Listed,
  type Method,
  type Page,
  pathTo,
  type Query,
  type Reply,
} from './office-api.ts'
import { type Answer, type Json, jsonCodec, type Wire } from './wire.ts'

export interface LeasedItem {
  readonly id: string
  readonly attempts: number
  readonly payload: string
}

interface Leased {
  readonly partition: number
  readonly items: readonly LeasedItem[]
}

/** What a lease gave; nothing when it gave nothing. */
export function leasedIn(body: Json | undefined): Leased {
  // The reply of a lease, as the contract has it; the wire has checked it against the message.
  const { partition = 0, items = [] } = (body ?? {}) as {
    partition?: number
    items?: { id: string; attempts: number; bytes?: string }[]
  }
  const payloadOf = (bytes = '') => Buffer.from(bytes, 'base64').toString()
  return {
    partition,
    items: items.map(({ id, attempts, bytes }) => ({ id, attempts, payload: payloadOf(bytes) })),
  }
}

/** An item as lists of storage show it. */
export interface StoredItem {
  readonly id: string
  readonly sourceId: string | undefined
  readonly isLeased: boolean
  readonly payload: string
}

/** All that a list of storage shows of a queue, or of one partition. */
export async function storedIn(
  wire: Wire,
  path: '/v1/storage/items.list' | '/v1/storage/scheduled.list',
  place: Json,
): Promise<readonly StoredItem[]> {
  const { items } = await ok(wire, path, { ...place, limit: 1_000_000 })
  // The reply of a list, as the contract has it; without items the field is left out.
  const listed = (items ?? []) as unknown as {
    id: string
    source_id?: string
    is_leased?: boolean
    payload?: string
  }[]
  return listed.map(({ id, source_id, is_leased = false, payload = '' }) => ({
    id,
    sourceId: source_id,
    isLeased: is_leased,
    payload: Buffer.from(payload, 'base64').toString(),
  }))
}

/** A call of the queues that must succeed. */
export async function ok(wire: Wire, path: Path, body: Json): Promise<Json> {
  const answer = await wire.call(jsonCodec, path, body)
  expect(answer, `${path} ${JSON.stringify(body)}`).toMatchObject({ status: 200 })
  return answer.body
}

/** Only the loss of a connection ends a client; what is wrong with an answer fails the test. */
export const isLoss = (error: unknown): boolean =>
  error instanceof Error &&
  'code' in error &&
  typeof error.code === 'string' &&
  error.name !== 'AssertionError'

export class Clerk {
  readonly wire: Wire
  readonly name: string

  constructor(wire: Wire, name: string) {
    this.wire = wire
    this.name = name
  }

  api(method: Method, path: string, call: Call = {}): Promise<Reply> {
    return apiCall(this.wire, method, path, call)
  }

  /** A call that must be answered with one of these. */
  async expects(statuses: readonly number[], method: Method, path: string, call: Call = {}): Promise<Reply> {
    const reply = await this.api(method, path, call)
    expect(statuses, `${method} ${path}: ${JSON.stringify(reply.error)}`).toContain(reply.status)
    return reply
  }

  async page(query: Query): Promise<Page<Listed>> {
    const { data } = await this.expects([200], 'GET', '/api/dlq', { query })
    return data as Page<Listed> // the reply of a list
  }

  async walk(query: Query, onPage: () => Promise<void> | void = () => {}): Promise<Listed[]> {
    const all: Listed[] = []
    let continuationToken: string | undefined
    do {
      const page: Page<Listed> = await this.page({ limit: 100, ...query, continuationToken })
      all.push(...page.items)
      continuationToken = page.continuationToken ?? undefined
      await onPage()
    } while (continuationToken !== undefined)
    return all
  }

  /** Changes a letter's status; false when it was refused for the status it has or for who holds it. */
  async change(key: Key, status: Listed['status']): Promise<boolean> {
    const body = { status, resolutionNotes: `by ${this.name}` }
    return (await this.expects([200, 409], 'PATCH', pathTo(key), { body })).status === 200
  }

  async retry(key: Key, headers: Record<string, string> = {}): Promise<boolean> {
    return (await this.expects([200, 409], 'POST', pathTo(key, '/retry'), { headers })).status === 200
  }

  queue(path: Path, body: Json): Promise<Answer> {
    return this.wire.call(jsonCodec, path, body)
  }

  /** A queue call that must succeed. */
  did(path: Path, body: Json): Promise<Json> {
    return ok(this.wire, path, body)
  }

  async createPair(queue: string, settings: Json = {}): Promise<void> {
    const timeouts = { lease_timeout: '10m', expire_timeout: '24h', requested_partitions: 1, ...settings }
    await this.did('/v1/queues.create', { ...timeouts, queue_name: `${queue}-dead` })
    await this.did('/v1/queues.create', { ...timeouts, queue_name: queue, dead_queue: `${queue}-dead` })
  }

  produce(queue: string, payloads: readonly string[]): Promise<Json> {
    const items = payloads.map((utf8) => ({ utf8 }))
    return this.did('/v1/queue.produce', { queue_name: queue, request_timeout: '1m', items })
  }

  /** What can be leased now; nothing when there is nothing. */
  async lease(queue: string, batch_size: number): Promise<Leased> {
    const request = { queue_name: queue, batch_size, client_id: this.name, request_timeout: '20ms' }
    const answer = await this.queue('/v1/queue.lease', request)
    if (answer.status === 454) return leasedIn(undefined)
    expect(answer.status, String(answer.body.message)).toBe(200)
    return leasedIn(answer.body)
  }

  complete(queue: string, ids: readonly string[]): Promise<Answer> {
    return this.queue('/v1/queue.complete', { queue_name: queue, request_timeout: '1m', ids: [...ids] })
  }

  bury(queue: string, ids: readonly string[]): Promise<Answer> {
    return this.queue('/v1/queue.retry', { queue_name: queue, items: ids.map((id) => ({ id, dead: true })) })
  }
}
