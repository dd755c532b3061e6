/**
 * For tests only: a queue server of one queue, in memory, behind the `fetch` of a client. It keeps what the
 * consumer can see (leases, deadlines, all-or-nothing checks) and can be told to fail.
 */
import type { Fetch } from '../../src/client/transport.ts'

interface StubItem {
  id: string
  attempts: number
  payload: string
  leasedUntil: number | undefined
}

interface Body {
  batch_size?: number
  ids?: string[]
  items?: { id: string; retry_at?: string; dead?: boolean }[]
}

export interface StubCall {
  readonly path: string
  readonly body: Body
}

type Reply = { status: number; body: object }

const ok: Reply = { status: 200, body: { code: 200 } }
const refused = (status: number, message: string): Reply => ({ status, body: { code: status, message } })

export class StubServer {
  readonly calls: StubCall[] = []
  readonly completed: string[] = []
  readonly retried: { id: string; retry_at?: string; dead?: boolean }[] = []
  leaseMs = 10_000
  maxAttempts = 0
  /** Answers instead of the queue while it returns something; it may throw as a broken connection does. */
  interfere: (call: StubCall) => Reply | undefined = () => undefined
  readonly #items: StubItem[] = []
  readonly #waiting = new Set<() => void>()

  /** Adds items whose ids are letters repeated to the length of an id: 'a' is `aaaa…`. */
  add(...names: string[]): void {
    for (const name of names) {
      this.#items.push({ id: name.repeat(27), attempts: 0, payload: name, leasedUntil: undefined })
    }
    for (const wake of this.#waiting) wake()
  }

  readonly fetch: Fetch = async (url, { body = '{}', signal }) => {
    const call: StubCall = { path: new URL(url).pathname, body: JSON.parse(body) }
    this.calls.push(call)
    const reply = this.interfere(call) ?? (await this.#answer(call, signal))
    if (signal.aborted) throw new DOMException('aborted', 'AbortError')
    return { status: reply.status, text: async () => JSON.stringify(reply.body) }
  }

  callsTo(path: string): Body[] {
    return this.calls.filter((call) => call.path === path).map(({ body }) => body)
  }

  async #answer({ path, body }: StubCall, signal: AbortSignal): Promise<Reply> {
    switch (path) {
      case '/v1/queues.info':
        return {
          status: 200,
          body: { queue_name: 'q', lease_timeout: `${this.leaseMs / 1000}s`, max_attempts: this.maxAttempts },
        }
      case '/v1/queue.lease':
        return await this.#lease(body.batch_size ?? 0, signal)
      case '/v1/queue.extend':
        return this.#each(body.ids ?? [], (item) => {
          item.leasedUntil = performance.now() + this.leaseMs
        })
      case '/v1/queue.complete':
        return this.#each(body.ids ?? [], (item) => {
          this.#items.splice(this.#items.indexOf(item), 1)
          this.completed.push(item.payload)
        })
      case '/v1/queue.retry': {
        const items = body.items ?? []
        return this.#each(
          items.map(({ id }) => id),
          (item) => {
            this.#items.splice(this.#items.indexOf(item), 1)
            this.retried.push(...items.filter(({ id }) => id === item.id))
          },
        )
      }
      default:
        return refused(501, `no such method; ${path}`)
    }
  }

  async #lease(batchSize: number, signal: AbortSignal): Promise<Reply> {
    let free = this.#free(batchSize)
    while (free.length === 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve)
        signal.addEventListener('abort', () => resolve(), { once: true })
      })
      free = this.#free(batchSize)
    }
    const leasedUntil = performance.now() + this.leaseMs
    if (signal.aborted) free = []
    for (const item of free) Object.assign(item, { leasedUntil, attempts: item.attempts + 1 })
    const items = free.map(({ id, attempts, payload }) => ({
      id,
      attempts,
      lease_deadline: new Date(SERVER_EPOCH_MS + leasedUntil).toISOString(),
      bytes: btoa(payload),
    }))
    return { status: 200, body: { queue_name: 'q', items } }
  }

  #free(limit: number): StubItem[] {
    return this.#items.filter(({ leasedUntil }) => (leasedUntil ?? 0) <= performance.now()).slice(0, limit)
  }

  #each(ids: readonly string[], act: (item: StubItem) => void): Reply {
    const items: StubItem[] = []
    for (const id of ids) {
      const item = this.#items.find((candidate) => candidate.id === id)
      if (item === undefined) return refused(400, `invalid storage id; '${id}' does not exist`)
      items.push(item)
    }
    for (const item of items) act(item)
    const leaseDeadline = new Date(SERVER_EPOCH_MS + performance.now() + this.leaseMs).toISOString()
    return ids.length > 0 && this.calls.at(-1)?.path === '/v1/queue.extend'
      ? { status: 200, body: { lease_deadline: leaseDeadline } }
      : ok
  }
}

/** The stub's clock is years ahead of the machine's: no consumer may rely on the two being equal. */
export const SERVER_EPOCH_MS = Date.parse('2040-01-01T00:00:00Z')
