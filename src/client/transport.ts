/**
 * One call over HTTP: JSON out, JSON in, every failure a `QueueClientError`. Calls are bounded in time, and
 * an abort by the caller ends them at once.
 */
import { errorOfReply, QueueClientError } from './errors.ts'

/** As much of the platform's `fetch` as is needed, so that tests and other runtimes can bring their own. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body: string; signal: AbortSignal },
) => Promise<{ readonly status: number; text(): Promise<string> }>

export interface Endpoint {
  readonly url: string
  readonly token: string | undefined
  readonly fetch: Fetch
}

export interface CallOptions {
  readonly signal?: AbortSignal
}

/** Longest text of a foreign reply (a proxy's page, say) that is quoted in an error. */
const QUOTED_REPLY_LENGTH = 200

/** Posts `body` to `path` and gives the decoded reply. */
export async function call(
  endpoint: Endpoint,
  path: string,
  body: object,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const url = endpoint.url + path
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), timeoutMs)
  const passOn = () => limit.abort()
  signal?.addEventListener('abort', passOn)
  if (signal?.aborted) limit.abort()
  try {
    // Called free of its object: browsers refuse a `fetch` that is called as a method of anything else.
    const { fetch } = endpoint
    const reply = await fetch(url, {
      method: 'POST',
      headers: headersFor(endpoint),
      body: JSON.stringify(body),
      signal: limit.signal,
    })
    return decoded(url, reply.status, await reply.text())
  } catch (error) {
    if (error instanceof QueueClientError) throw error
    if (signal?.aborted) throw new QueueClientError('aborted', 0, `${url}: aborted`, { cause: error })
    if (limit.signal.aborted) {
      throw new QueueClientError('timed_out', 0, `${url}: no reply within ${timeoutMs} ms`, { cause: error })
    }
    throw new QueueClientError('network', 0, `${url}: ${reasonOf(error)}`, { cause: error })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', passOn)
  }
}

function headersFor({ token }: Endpoint): Record<string, string> {
  const headers: Record<string, string> = { 'content-type': 'application/json', accept: 'application/json' }
  if (token !== undefined) headers.authorization = `Bearer ${token}`
  return headers
}

function decoded(url: string, status: number, text: string): unknown {
  let reply: unknown
  try {
    reply = JSON.parse(text)
  } catch {
    const quoted = text.slice(0, QUOTED_REPLY_LENGTH)
    throw new QueueClientError('unreadable_reply', status, `${url}: status ${status}, not JSON: ${quoted}`)
  }
  if (status === 200) return reply
  const message =
    typeof reply === 'object' && reply !== null && 'message' in reply ? reply.message : undefined
  throw errorOfReply(status, typeof message === 'string' ? message : `${url}: status ${status}`)
}

/** Runtimes hide the reason ("connect ECONNREFUSED …") in the cause of a "fetch failed". */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause
  if (!(cause instanceof Error)) return error.message
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
  return cause.message === '' ? code || error.message : cause.message
}
