/** A client of one server for tests of the office: calls that must succeed, calls that must be refused, deaths. */
import { expect } from 'vitest'
import {
  apiCall,
  type Call,
  type Detail,
  type Entry,
  type Failed,
  type Key,
  type Listed,
  type Method,
  type Page,
  pathTo,
  type Query,
  type Reply,
} from '../../world/office-api.ts'
import type { StoreKind } from '../../world/stores.ts'
import type { TestClock } from '../../world/time.ts'
import { jsonCodec, type Wire } from '../../world/wire.ts'
import { Bed, base64, type Ground, only, unique } from '../queues/bed.ts'

/** A client of the office, and of the queues beside it. */
export class Desk {
  readonly queues: Bed
  readonly #ground: () => Ground

  constructor(store: StoreKind, ground: () => Ground) {
    this.#ground = ground
    this.queues = new Bed(store, jsonCodec, ground)
  }

  get clock(): TestClock {
    return this.#ground().clock
  }

  get wire(): Wire {
    return this.#ground().wire
  }

  get store(): StoreKind {
    return this.queues.store
  }

  /** One call; whatever the answer, it comes in the envelope. */
  api(method: Method, path: string, call: Call = {}): Promise<Reply> {
    return apiCall(this.wire, method, path, call)
  }

  /** A call that must succeed, by default with 200. */
  async ok<T>(method: 'GET' | 'POST' | 'PATCH', path: string, call: Call = {}, status = 200): Promise<T> {
    const reply = await this.api(method, path, call)
    expect(reply.status, `${method} ${path}: ${JSON.stringify(reply.error)}`).toBe(status)
    // Each caller names the reply of the contract for its call, and looks at what it relies on.
    return reply.data as T
  }

  /** A call that must be refused with this status, in words that name all of `mentions`. */
  async refuses(
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    call: Call,
    status: number,
    ...mentions: string[]
  ): Promise<Failed> {
    const reply = await this.api(method, path, call)
    const shown = `${method} ${path} ${JSON.stringify(call).slice(0, 300)}`
    expect(reply.status, `${shown}: ${JSON.stringify(reply.error ?? reply.data).slice(0, 500)}`).toBe(status)
    const words = JSON.stringify(reply.error)
    for (const mention of mentions) expect(words, shown).toContain(mention)
    return reply.error ?? expect.fail('a refusal has an error')
  }

  /** Captures a letter over HTTP; what is not given is the least that is needed. */
  capture(fields: Record<string, unknown> = {}): Promise<Listed> {
    return this.ok('POST', '/api/dlq', { body: captureBody(fields) }, 201)
  }

  list(query: Query = {}): Promise<Page<Listed>> {
    return this.ok('GET', '/api/dlq', { query })
  }

  /** All pages of a list, put together. */
  async walk(query: Query = {}): Promise<Listed[]> {
    const all: Listed[] = []
    let continuationToken: string | undefined
    do {
      const page: Page<Listed> = await this.list({
        ...query,
        ...(continuationToken === undefined ? {} : { continuationToken }),
      })
      expect(page.items.length).toBeLessThanOrEqual(Number(query.limit ?? 50))
      all.push(...page.items)
      continuationToken = page.continuationToken ?? undefined
    } while (continuationToken !== undefined)
    return all
  }

  letter(key: Key): Promise<Detail> {
    return this.ok('GET', pathTo(key))
  }

  patch(key: Key, status: string, resolutionNotes?: string): Promise<unknown> {
    return this.ok('PATCH', pathTo(key), { body: { status, resolutionNotes } })
  }

  retry(key: Key, call: Call = {}): Promise<{ messageId: string; queue: string }> {
    return this.ok('POST', pathTo(key, '/retry'), call)
  }

  history(query: Query = {}): Promise<Page<Entry>> {
    return this.ok('GET', '/api/history', { query })
  }

  /** The acts on one letter, oldest first. */
  async acts(key: Key): Promise<string[]> {
    const { history } = await this.letter(key)
    return history.map(({ operation }) => operation).reverse()
  }

  counts(query: Query = {}): Promise<Page<Record<string, unknown>>> {
    return this.ok('GET', '/api/counts', { query })
  }

  /** A queue with a dead queue, both new. */
  async pair(settings: Record<string, string | number> = {}): Promise<{ queue: string; dead: string }> {
    const dead = await this.queues.queue({ expire_timeout: '1h' })
    return { dead, queue: await this.queues.queue({ dead_queue: dead, ...settings }) }
  }

  /** Produces one item and lets it die by a retry with `dead`; gives the letter and the id it died with. */
  async death(queue: string, payload: Uint8Array | string = 'x', item: Record<string, string> = {}) {
    const bytes = typeof payload === 'string' ? base64(payload) : Buffer.from(payload).toString('base64')
    await this.queues.produceItems(queue, [{ ...item, bytes }])
    const { id } = only((await this.queues.lease(queue)).items)
    await this.queues.retry(queue, [{ id, dead: true }])
    return this.letterOf(queue, id)
  }

  /** The letter of the item that died in `queue` with this id. */
  async letterOf(queue: string, id: string): Promise<Listed> {
    return only(
      (await this.walk({ originalQueue: queue })).filter(({ rowKey }) => rowKey.startsWith(`${id}-`)),
    )
  }
}

/** The body of a capture with everything that is required. */
export const captureBody = (fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  engine: 'hmac',
  originalMessage: '{"hello":"world"}',
  errorMessage: 'it failed',
  sourceId: unique('source'),
  ...fields,
})
