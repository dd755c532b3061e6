/**
 * One exchange over HTTP: JSON out, JSON in, every failure an error of the caller's kind. Bounded in time; the caller's
 * abort ends it at once.
 */
import { errorOfReply, QueueClientError, type TransportCode } from './errors.ts'

/** The part of `fetch` that is needed, so that tests and other runtimes can bring their own. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body?: string; signal: AbortSignal },
) => Promise<{ readonly status: number; text(): Promise<string> }>

export interface ConnectionOptions {
  /** Where the server is, for example `http://127.0.0.1:1853`. */
  readonly url: string
  readonly token?: string | undefined
  /** Default: the platform's. */
  readonly fetch?: Fetch
}

export interface Endpoint {
  readonly url: string
  readonly token: string | undefined
  readonly fetch: Fetch
}

export interface CallOptions {
  readonly signal?: AbortSignal
}

/** Throws when the URL is none. */
export function endpointOf({ url, token, fetch = globalThis.fetch }: ConnectionOptions): Endpoint {
  if (!URL.canParse(url))
    throw new TypeError(`url '${url}' is not a URL; expected for example http://127.0.0.1:1853`)
  return { url: url.replace(/\/+$/, ''), token, fetch }
}

export interface Exchange {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
  /** The error of a call without a proper reply. */
  readonly failed: (code: TransportCode, status: number, message: string, options?: ErrorOptions) => Error
}

export interface Reply {
  readonly url: string
  readonly status: number
  readonly body: unknown
}

/** Longest quote of a foreign reply, such as a proxy's page. */
const QUOTED_REPLY_LENGTH = 200

/** Gives the decoded reply, whatever its status. */
export async function exchange(endpoint: Endpoint, request: Exchange): Promise<Reply> {
  const { timeoutMs, signal, failed } = request
  const url = endpoint.url + request.path
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), timeoutMs)
  const passOn = () => limit.abort()
  signal?.addEventListener('abort', passOn)
  if (signal?.aborted) limit.abort()
  let status: number
  let text: string
  try {
    // Browsers refuse a `fetch` that is called as a method.
    const { fetch } = endpoint
    const reply = await fetch(url, { ...messageOf(endpoint, request), signal: limit.signal })
    status = reply.status
    text = await reply.text()
  } catch (error) {
    if (signal?.aborted) throw failed('aborted', 0, `${url}: aborted`, { cause: error })
    if (limit.signal.aborted) {
      throw failed('timed_out', 0, `${url}: no reply within ${timeoutMs} ms`, { cause: error })
    }
    throw failed('network', 0, `${url}: ${reasonOf(error)}`, { cause: error })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', passOn)
  }
  try {
    return { url, status, body: JSON.parse(text) }
  } catch {
    const quoted = text.slice(0, QUOTED_REPLY_LENGTH)
    throw failed('unreadable_reply', status, `${url}: status ${status}, not JSON: ${quoted}`)
  }
}

function messageOf({ token }: Endpoint, { method, body, headers: extra }: Exchange) {
  const headers: Record<string, string> = { accept: 'application/json', ...extra }
  if (token !== undefined) headers.authorization = `Bearer ${token}`
  if (body === undefined) return { method, headers }
  headers['content-type'] = 'application/json'
  return { method, headers, body: JSON.stringify(body) }
}

/** A call of the queue API. */
export async function call(
  endpoint: Endpoint,
  path: string,
  body: object,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const reply = await exchange(endpoint, {
    method: 'POST',
    path,
    body,
    timeoutMs,
    signal,
    failed: (...given) => new QueueClientError(...given),
  })
  if (reply.status === 200) return reply.body
  const message = field(reply.body, 'message')
  throw errorOfReply(
    reply.status,
    typeof message === 'string' ? message : `${reply.url}: status ${reply.status}`,
  )
}

/** Replies may be anything. */
export const field = (reply: unknown, name: string): unknown =>
  typeof reply === 'object' && reply !== null && name in reply ? Reflect.get(reply, name) : undefined

/** Runtimes hide the reason ("connect ECONNREFUSED …") in the cause of a "fetch failed". */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause
  if (!(cause instanceof Error)) return error.message
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
  return cause.message === '' ? code || error.message : cause.message
}
