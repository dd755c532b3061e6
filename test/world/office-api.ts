/** The office API on the wire: what replies look like, and a call that checks the envelope of each. */
import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import type {
  HistoryDetail,
  HistoryItem,
  LetterDetail,
  LetterItem,
  LetterKey,
} from '../../src/client/index.ts'
import { rfc3339 } from './time.ts'
import type { RawReply, Wire } from './wire.ts'

export type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'

/** How a letter is named on the wire, as lists show it, and on its own page. */
export type Key = LetterKey
export type Listed = LetterItem
export type Detail = LetterDetail
/** A history entry; input, output and error only on its own page. */
export type Entry = HistoryItem & Partial<HistoryDetail>

export interface Page<T> {
  readonly items: readonly T[]
  readonly continuationToken?: string | null
}

export interface Failed {
  readonly code: string
  readonly message: string
  readonly details?: unknown
}

export interface Reply {
  readonly status: number
  readonly correlationId: string
  /** Of a success. */
  readonly data: unknown
  /** Of a failure. */
  readonly error: Failed | undefined
}

export type Query = Readonly<Record<string, string | number | undefined>>

export interface Call {
  readonly query?: Query
  /** Sent as JSON; a string or bytes are sent as they are. */
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

/** Every time in a reply: ISO 8601 in UTC with microseconds. */
export const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/

/** An instant as the office writes it. */
export function micros(at: bigint): string {
  const [whole = '', fraction = ''] = rfc3339(at).replace('Z', '').split('.')
  return `${whole}.${fraction.padEnd(6, '0')}Z`
}

/** An instant as it stands in a row key. */
export const stamp = (at: bigint): string => micros(at).replace(/[-:.]/g, '')

export const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex')

export const pathTo = ({ engine, rowKey }: Key, more = ''): string =>
  `/api/dlq/${encodeURIComponent(engine)}/${encodeURIComponent(rowKey)}${more}`

/** One call of the office API at any server; checks the envelope. */
export async function apiCall(wire: Wire, method: Method, path: string, call: Call = {}) {
  const { query = {}, body, headers = {} } = call
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  const raw = typeof body === 'string' || body instanceof Uint8Array || body === undefined
  const reply = await wire.raw(search === '' ? path : `${path}?${search}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: raw ? body : JSON.stringify(body) }),
  })
  return opened(reply, `${method} ${path}`)
}

/** What is in the envelope of a reply; fails when the envelope is not as the contract has it. */
export function opened(reply: RawReply, shown = ''): Reply {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(reply.bytes)
  expect(String(reply.headers['content-type']), `${shown}: ${text.slice(0, 200)}`).toMatch(
    /^application\/json/,
  )
  const body: Record<string, unknown> = JSON.parse(text)
  const { correlationId } = body
  expect(reply.headers['x-correlation-id'], shown).toBe(correlationId)
  const common = {
    correlationId: expect.stringMatching(/^[!-~]{1,128}$/),
    timestamp: expect.stringMatching(TIME),
  }
  if (reply.status < 300) {
    const { data, ...rest } = body
    expect(rest, shown).toEqual({ ...common, status: 'Succeeded' })
    expect(data, shown).toBeTypeOf('object')
    return { status: reply.status, correlationId: String(correlationId), data, error: undefined }
  }
  const { error, ...rest } = body
  expect(rest, shown).toEqual({ ...common, status: 'Failed' })
  const { details: _, ...words } = error as Failed & Record<string, unknown> // checked in the next line
  expect(words, shown).toEqual({ code: expect.stringMatching(/./), message: expect.stringMatching(/./) })
  return {
    status: reply.status,
    correlationId: String(correlationId),
    data: undefined,
    error: error as Failed,
  }
}
