/** The answers of the webhook API, to the byte: JSON without a charset and with one newline, errors as bare text. */
import type { Answer } from '../../../api/exact-answer.ts'
import { REFUSALS, type Refused } from '../refusal.ts'

const JSON_HEADERS = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }
const TEXT_HEADERS = { 'Content-Type': 'text/plain; charset=utf-8' }
const PLAIN_HEADERS = { ...TEXT_HEADERS, 'X-Content-Type-Options': 'nosniff' }

export const json = (value: unknown, headers: Answer['headers'] = {}): Answer => ({
  status: 200,
  body: `${JSON.stringify(value)}\n`,
  headers: { ...JSON_HEADERS, ...headers },
})

export const created = (location: string): Answer => ({
  status: 201,
  body: '',
  headers: { Location: location },
})

export const ACCEPTED: Answer = { status: 202, body: '', headers: {} }
export const NO_CONTENT: Answer = { status: 204, body: '', headers: {} }

export const UNKNOWN_PATH: Answer = { status: 404, body: '404 page not found\n', headers: PLAIN_HEADERS }

export const STOPPING: Answer = {
  status: 503,
  body: 'service is shutting down',
  headers: { ...TEXT_HEADERS, 'Retry-After': '1' },
}

export const INTERNAL: Answer = {
  status: REFUSALS.internal.status,
  body: REFUSALS.internal.text,
  headers: TEXT_HEADERS,
}

export const refused = ({ status, message }: Refused): Answer => ({
  status,
  body: message,
  headers: TEXT_HEADERS,
})

export const methodNotAllowed = (allow: string): Answer => ({
  status: 405,
  body: 'Method Not Allowed\n',
  headers: { ...PLAIN_HEADERS, Allow: allow },
})

export const methodsOf = (allow: string): Answer => ({ status: 200, body: '', headers: { Allow: allow } })

export const moved = (method: string, location: string): Answer => ({
  status: method === 'GET' ? 301 : 307,
  body: '',
  headers: { Location: location },
})
