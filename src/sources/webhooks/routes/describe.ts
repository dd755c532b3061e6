/** How calls of the webhook API look in the OpenAPI document. */

import { paramsIn } from '../../../api/describe.ts'
import { TEXT } from '../../../api/shapes.ts'
import type { Role } from '../../../core/roles.ts'
import type { WebhookCall } from './call.ts'

const MEANINGS: Readonly<Record<number, string>> = {
  200: 'OK',
  201: 'Accepted and durable; `Location` says where it is',
  202: 'Done',
  204: 'Done',
  400: 'Something about the request is wrong; the text says what',
  401: 'The producer or consumer is unknown, or the signature is missing',
  403: 'A token or signature is wrong',
  404: 'It does not exist',
  408: 'The body took too long',
  409: 'It cannot be: the id is taken, or there are jobs',
  412: 'A condition does not hold',
  413: 'The body is too large',
  415: 'A form was expected',
  421: 'The host is none that this server is served under',
  429: 'Too many wrong tokens, or connections without one, from this address',
  500: 'The store could not be read',
}

/** Answered before the call. */
const OF_EVERY_CALL = [408, 421, 429]

const texts = (fields: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(fields).map(([name, description]) => [name, { type: 'string', description }]),
  )

function bodyOf({ form, body }: WebhookCall) {
  if (body !== undefined) return { body: { content: { [body.mediaType]: { schema: body.schema } } } }
  if (form === undefined) return {}
  const schema = { type: 'object', properties: texts(form) }
  return { body: { content: { 'application/x-www-form-urlencoded': { schema } } } }
}

export function describeCall(call: WebhookCall, role: Role | 'open'): Readonly<Record<string, unknown>> {
  const { method, path, headers, query, success, errors } = call
  const [status, shape] = success
  const answer =
    shape === undefined ? { type: 'null' } : { content: { 'application/json': { schema: shape } } }
  const plain = { 'text/plain': { schema: TEXT } }
  return {
    operationId: `${method.toLowerCase()}${path.replace(/[/:_-]+(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary: call.summary,
    description:
      role === 'open'
        ? 'Open to everyone who has the tokens that the call itself asks for.'
        : `Needs the role ${role} once tokens are configured.`,
    tags: ['webhooks'],
    ...paramsIn(path),
    ...(query === undefined ? {} : { querystring: { type: 'object', properties: texts(query) } }),
    ...(headers === undefined
      ? {}
      : { headers: { type: 'object', properties: Object.fromEntries(headers.map((name) => [name, TEXT])) } }),
    ...bodyOf(call),
    response: {
      [status]: { description: MEANINGS[status], ...answer },
      ...Object.fromEntries(
        [...errors, ...OF_EVERY_CALL].map((error) => [
          error,
          { description: MEANINGS[error], content: plain },
        ]),
      ),
    },
  }
}
