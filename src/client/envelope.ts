/**
 * Calls of the office API (`/api/`): replies are envelopes, of which callers get `data` or an `OfficeClientError`. A
 * call whose connection fails is repeated when that cannot do harm: when it only reads, or carries an idempotency key.
 */
import { backoffDelayMs, SETBACK } from '../core/backoff.ts'
import { sleep } from '../core/waiting.ts'
import { OfficeClientError } from './errors.ts'
import { type Time, timeToWire } from './times.ts'
import {
  type CallOptions,
  type ConnectionOptions,
  type Endpoint,
  type Exchange,
  endpointOf,
  exchange,
  field,
  type Reply,
} from './transport.ts'

export interface WriteOptions extends CallOptions {
  /**
   * 1 to 255 visible ASCII characters. A key that the server saw in the last 24 hours gets the first answer again. Left
   * out: a new one. null: none, and a call whose connection fails is not repeated.
   */
  readonly idempotencyKey?: string | null
}

/** `continuationToken` asks for the next page; null on the last. */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly continuationToken: string | null
}

export interface PageRequest {
  /** 1 to 100; left out: 50. */
  readonly limit?: number
  /** Of the page before, asked with the same filter. */
  readonly continuationToken?: string | undefined
}

type Query = Readonly<Record<string, Time | number | boolean | undefined>>

export const CALL_TIMEOUT_MS = 60_000
const MAX_REPEATS = 4
const LARGEST_PAGE = 100

/** `…/first/second`, each part as one segment whatever it holds. */
export const pathTo = (base: string, ...parts: readonly string[]): string =>
  [base, ...parts.map(encodeURIComponent)].join('/')

/** Shared by the clients of the office. They hold no connection and no state. */
export class OfficeCalls {
  readonly #endpoint: Endpoint

  constructor(options: ConnectionOptions) {
    this.#endpoint = endpointOf(options)
  }

  protected async fetch<Data>(path: string, query: Query, options: CallOptions | undefined): Promise<Data> {
    const request = { method: 'GET', path: path + queryText(query) } as const
    return (await answerOf<Data>(this.#endpoint, request, options, true)).data
  }

  /** Replies may leave the token of the last page out. */
  protected async fetchPage<Item>(
    path: string,
    query: Query,
    options: CallOptions | undefined,
  ): Promise<Page<Item>> {
    const { items, continuationToken } = await this.fetch<Partial<Page<Item>>>(path, query, options)
    return { items: items ?? [], continuationToken: continuationToken ?? null }
  }

  protected async post<Data>(
    path: string,
    body: object,
    options?: WriteOptions,
    timeoutMs?: number,
  ): Promise<Data> {
    return (await writeAnswered<Data>(this.#endpoint, 'POST', path, body, options, timeoutMs)).data
  }

  protected async patch<Data>(path: string, body: object, options?: WriteOptions): Promise<Data> {
    return (await writeAnswered<Data>(this.#endpoint, 'PATCH', path, body, options)).data
  }

  /** For calls that may be sent any number of times: without an idempotency key. */
  protected async postAgain<Data>(path: string, body: object, options?: CallOptions): Promise<Data> {
    return (await answerOf<Data>(this.#endpoint, { method: 'POST', path, body }, options, true)).data
  }
}

/** All items of a list, page after page, as they are asked for. */
export async function* walkPages<Item>(
  limit: number | undefined,
  list: (page: PageRequest) => Promise<Page<Item>>,
): AsyncGenerator<Item, void, undefined> {
  let continuationToken: string | undefined
  do {
    const page: Page<Item> = await list({ limit: limit ?? LARGEST_PAGE, continuationToken })
    yield* page.items
    continuationToken = page.continuationToken ?? undefined
  } while (continuationToken !== undefined)
}

interface Answered<Data> {
  /** 201 when something was made, 202 when it goes on, else 200. */
  readonly status: number
  readonly data: Data
}

export async function writeAnswered<Data>(
  endpoint: Endpoint,
  method: 'POST' | 'PATCH',
  path: string,
  body: object,
  { idempotencyKey = newKey(), ...options }: WriteOptions = {},
  timeoutMs = CALL_TIMEOUT_MS,
): Promise<Answered<Data>> {
  const headers: Record<string, string> = idempotencyKey === null ? {} : { 'idempotency-key': idempotencyKey }
  const request = { method, path, body, headers, timeoutMs }
  return answerOf(endpoint, request, options, idempotencyKey !== null)
}

type Request = Pick<Exchange, 'method' | 'path' | 'body' | 'headers'> & { readonly timeoutMs?: number }

/** Sends the request, again after a failed connection if `repeatable`, and opens the envelope. */
export async function answerOf<Data>(
  endpoint: Endpoint,
  request: Request,
  { signal }: CallOptions = {},
  repeatable: boolean,
): Promise<Answered<Data>> {
  const attempt = {
    timeoutMs: CALL_TIMEOUT_MS,
    ...request,
    signal,
    failed: (...given: ConstructorParameters<typeof OfficeClientError>) => new OfficeClientError(...given),
  }
  for (let failures = 0; ; failures++) {
    try {
      const reply = await exchange(endpoint, attempt)
      return { status: reply.status, data: opened(reply) as Data }
    } catch (error) {
      const lost = error instanceof OfficeClientError && error.code === 'network'
      if (!lost || !repeatable || failures === MAX_REPEATS) throw error
      await sleep(backoffDelayMs(failures + 1, SETBACK), signal ?? new AbortController().signal)
    }
  }
}

function opened({ url, status, body }: Reply): unknown {
  const correlationId = text(field(body, 'correlationId'))
  const succeeded = status >= 200 && status < 300
  const content = field(body, succeeded ? 'data' : 'error')
  if (content === undefined) {
    throw new OfficeClientError('unreadable_reply', status, `${url}: status ${status}, not an office’s reply`)
  }
  if (succeeded) return content
  const message = text(field(content, 'message')) ?? `${url}: status ${status}`
  const details = field(content, 'details')
  throw new OfficeClientError(text(field(content, 'code')) ?? 'unreadable_reply', status, message, {
    correlationId,
    details,
  })
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** `?name=value…`; empty when nothing is given. */
export function queryText(query: Query): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, value instanceof Date ? timeToWire(value) : String(value))
  }
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

/** 128 random bits. Browsers keep `randomUUID` from pages that came without encryption. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
