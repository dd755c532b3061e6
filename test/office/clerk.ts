/** Short calls for tests with many clients: the office API and the queue API on one wire. */
import { expect } from 'vitest'
import type { Path } from '../world/messages.ts'
import { type Answer, type Json, jsonCodec, type Wire } from '../world/wire.ts'
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
} from './api.ts'

interface LeasedItems {
  readonly partition: number
  readonly items: readonly { readonly id: string; readonly attempts: number; readonly payload: string }[]
}

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
  async did(path: Path, body: Json): Promise<Json> {
    const answer = await this.queue(path, body)
    expect(answer.status, `${path}: ${answer.body.message}`).toBe(200)
    return answer.body
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
  async lease(queue: string, batch_size: number): Promise<LeasedItems> {
    const request = { queue_name: queue, batch_size, client_id: this.name, request_timeout: '20ms' }
    const answer = await this.queue('/v1/queue.lease', request)
    if (answer.status === 454) return { partition: 0, items: [] }
    expect(answer.status, String(answer.body.message)).toBe(200)
    // The reply of a lease, as the contract has it; the wire has checked it against the message.
    const leased = answer.body as unknown as {
      partition?: number
      items: { id: string; attempts: number; bytes?: string }[]
    }
    return {
      partition: leased.partition ?? 0,
      items: leased.items.map(({ id, attempts, bytes = '' }) => ({
        id,
        attempts,
        payload: Buffer.from(bytes, 'base64').toString(),
      })),
    }
  }

  complete(queue: string, ids: readonly string[]): Promise<Answer> {
    return this.queue('/v1/queue.complete', { queue_name: queue, request_timeout: '1m', ids: [...ids] })
  }

  bury(queue: string, ids: readonly string[]): Promise<Answer> {
    return this.queue('/v1/queue.retry', { queue_name: queue, items: ids.map((id) => ({ id, dead: true })) })
  }
}
