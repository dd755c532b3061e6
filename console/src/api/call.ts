/**
 * Calls of the server, on its own origin. Who asks is told by the session cookie, which scripts cannot read. Answers of the
 * office API lose their envelope here; failures of any API become one kind of error with a text for people.
 */
import { parseKeepingDigits } from './kept-digits.ts'

/** A call that did not succeed. */
export class CallFailure extends Error {
  readonly code: string
  /** Of HTTP; 0 when the server did not answer. */
  readonly status: number
  /** The part of the request that it is about, such as `stopRule.percent`; null where the server names none. */
  readonly parameter: string | null

  constructor(code: string, status: number, message: string, parameter: string | null = null) {
    super(message)
    this.name = 'CallFailure'
    this.code = code
    this.status = status
    this.parameter = parameter
  }
}

export type Parameters = Readonly<Record<string, string | number | boolean | null | undefined>>

export interface CallOptions {
  readonly query?: Parameters
  readonly body?: unknown
  /** The body as JSON, where its text matters. */
  readonly bodyText?: string
  readonly signal?: AbortSignal
  /** Made once, whatever the network does: the same key again gets the first answer again. */
  readonly onceKey?: string
  /** Numbers of the answer that JavaScript cannot hold keep their digits (`kept-digits.ts`). */
  readonly keepsDigits?: boolean
}

/** The address of a call; parameters without a value are left out. */
export function address(path: string, query: Parameters = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === null || value === '' ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}

/** A path whose parts may hold any character: `pathTo('/api/dlq', engine, rowKey)`. */
export const pathTo = (base: string, ...parts: readonly string[]): string =>
  [base, ...parts.map(encodeURIComponent)].join('/')

/** Calls the office API (`/api/…`) and gives `data` of the answer. `Data` is what the server promises. */
export async function call<Data>(
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  options: CallOptions = {},
): Promise<Data> {
  const answer = await request(method, path, options)
  const body = await jsonOf(answer, options.keepsDigits)
  if (answer.ok && isObject(body) && 'data' in body) return body.data as Data
  const error = isObject(body) && isObject(body.error) ? body.error : {}
  const details = isObject(error.details) ? error.details : {}
  throw failureOf(answer, error.code, error.message, details.parameter)
}

/** Calls the queue API (`POST /v1/…`), whose answers have no envelope. */
export async function callQueues<Data>(verb: string, body: object, signal?: AbortSignal): Promise<Data> {
  const answer = await request('POST', `/v1/${verb}`, { body, ...(signal === undefined ? {} : { signal }) })
  const found = await jsonOf(answer)
  if (answer.ok) return found as Data
  throw failureOf(
    answer,
    isObject(found) ? found.code : undefined,
    isObject(found) ? found.message : undefined,
  )
}

async function request(
  method: string,
  path: string,
  { query, body, bodyText, signal, onceKey }: CallOptions,
): Promise<Response> {
  const text = bodyText ?? (body === undefined ? undefined : JSON.stringify(body))
  try {
    return await fetch(address(path, query), {
      method,
      credentials: 'same-origin',
      headers: {
        accept: 'application/json',
        ...(text === undefined ? {} : { 'content-type': 'application/json' }),
        ...(onceKey === undefined ? {} : { 'idempotency-key': onceKey }),
      },
      ...(text === undefined ? {} : { body: text }),
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new CallFailure('network', 0, 'The server does not answer. Check that it is running.')
  }
}

async function jsonOf(answer: Response, keepsDigits = false): Promise<unknown> {
  try {
    return keepsDigits ? parseKeepingDigits(await answer.text()) : await answer.json()
  } catch {
    return null
  }
}

/** What the server says about a header means nothing to people in a browser. */
const SESSION_OVER = 'Your session has ended. Sign in again.'

function failureOf(answer: Response, code: unknown, message: unknown, parameter?: unknown): CallFailure {
  return new CallFailure(
    typeof code === 'string' ? code : `http_${answer.status}`,
    answer.status,
    code === 'token_missing'
      ? SESSION_OVER
      : typeof message === 'string'
        ? message
        : `The server answered ${answer.status} ${answer.statusText}.`,
    typeof parameter === 'string' ? parameter : null,
  )
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

/** What to tell people about anything that was thrown. */
export const reasonOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown)
