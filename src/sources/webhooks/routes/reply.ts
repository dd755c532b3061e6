/** The answers of the webhook API, to the byte: JSON without a charset and with one newline, errors as bare text. */
import { type Answer, answer } from '../../../api/exact-answer.ts'
import { Refused } from '../refusal.ts'

const JSON_HEADERS = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }
const TEXT_HEADERS = { 'Content-Type': 'text/plain; charset=utf-8' }
const PLAIN_HEADERS = { ...TEXT_HEADERS, 'X-Content-Type-Options': 'nosniff' }

export const json = (value: unknown, headers: Answer['headers'] = {}): Answer =>
  answer(200, `${JSON.stringify(value)}\n`, { ...JSON_HEADERS, ...headers })

export const created = (location: string): Answer => answer(201, '', { Location: location })
export const ACCEPTED: Answer = answer(202)
export const NO_CONTENT: Answer = answer(204)
export const UNKNOWN_PATH: Answer = answer(404, '404 page not found\n', PLAIN_HEADERS)
export const STOPPING: Answer = answer(503, 'service is shutting down', {
  ...TEXT_HEADERS,
  'Retry-After': '1',
})

export const refused = ({ status, message }: Refused): Answer => answer(status, message, TEXT_HEADERS)
export const INTERNAL: Answer = refused(new Refused('internal'))

export const methodNotAllowed = (allow: string): Answer =>
  answer(405, 'Method Not Allowed\n', { ...PLAIN_HEADERS, Allow: allow })
export const methodsOf = (allow: string): Answer => answer(200, '', { Allow: allow })

export const moved = (method: string, location: string): Answer =>
  answer(method === 'GET' ? 301 : 307, '', { Location: location })
