/** How calls of the Kafka API look in the OpenAPI document. */
import { objectOf, paramsIn } from '../../../api/describe.ts'
import type { JsonSchema } from '../../../api/proto-schema.ts'
import { INTEGER, TEXT } from '../../../api/shapes.ts'
import type { KafkaCall } from './call.ts'

const flag = (description: string): JsonSchema => ({ type: 'boolean', default: false, description })

/** `1`, `yes` and `on` are true too. */
const FLAGS = {
  dry_run: flag('Show what would be published, and write nothing'),
  mint_correlation_id: flag(
    'Use the correlation id that was made at intake, where the record has no valid one',
  ),
  resend: flag('Send an event of unknown outcome again: the same bytes with the same id'),
  detail: flag('Add the member `bartleby`; quarantined events always have it'),
} as const

export const { dry_run: DRY_RUN, ...RESOLVE_QUERY } = FLAGS

export const PROCESS_BODY: JsonSchema = {
  type: 'object',
  required: ['dlq_id'],
  properties: {
    dlq_id: { type: 'string', format: 'uuid' },
    override: {
      type: ['object', 'null'],
      required: ['topic', 'type_', 'payload', 'key'],
      properties: {
        topic: { ...TEXT, description: 'The original topic' },
        type_: TEXT,
        payload: { type: 'object', description: 'Its digits are published as they are written' },
        key: TEXT,
      },
    },
  },
}

export const SUMMARY: JsonSchema = {
  type: 'object',
  additionalProperties: { type: 'object', additionalProperties: INTEGER },
}

export const HEALTH = objectOf({ status: { type: 'string', const: 'OK' } })

const FAILED = objectOf({ description: TEXT, data: { type: 'object' }, exception_id: TEXT })
const REFUSED = objectOf({ detail: TEXT })
const MISSHAPEN = objectOf({
  detail: {
    type: 'array',
    items: objectOf({ loc: { type: 'array' }, msg: TEXT, type: TEXT, input: {} }),
  },
})

const ERRORS: Readonly<Record<number, readonly [meaning: string, shape: JsonSchema]>> = {
  400: ['Something about the request is wrong; `exception_id` says what', FAILED],
  401: ['No token, or a wrong one', REFUSED],
  403: ['A token of the server with too low a role', REFUSED],
  404: ['The service is unknown, or its queue is empty', FAILED],
  408: ['The body took too long', REFUSED],
  409: ['Not now, or not this event; `exception_id` says why', FAILED],
  412: ['Another event is next', FAILED],
  413: ['The body is too large', FAILED],
  421: ['The host is none that this server is served under', REFUSED],
  422: ['The request has another shape', MISSHAPEN],
  429: ['Too many wrong tokens, or connections without one, from this address', REFUSED],
  500: ['The processor failed, or something inside', FAILED],
  503: ['Kafka does not take it now, or nobody knows whether it did', FAILED],
  504: ['The processor took too long', FAILED],
}

const json = (schema: JsonSchema) => ({ 'application/json': { schema } })

const properties = (fields: Readonly<Record<string, JsonSchema>>) => ({ type: 'object', properties: fields })

export function describeCall(call: KafkaCall): Readonly<Record<string, unknown>> {
  const successes = Object.entries(call.success).map(([status, { meaning, shape }]) => [
    status,
    { description: meaning, ...(shape === undefined ? { type: 'null' } : { content: json(shape) }) },
  ])
  const statuses =
    call.isOpen === true ? call.errors : [401, 403, 408, 421, 429, ...call.errors].sort((a, b) => a - b)
  const errors = statuses.flatMap((status) => {
    const known = ERRORS[status]
    return known === undefined ? [] : [[status, { description: known[0], content: json(known[1]) }] as const]
  })
  return {
    operationId: call.operationId,
    summary: call.summary,
    description:
      call.isOpen === true
        ? 'Open to everyone.'
        : `Needs a token of the Kafka part, or one of the server with the role ${roleOf(call)}.`,
    tags: ['kafka'],
    security: call.isOpen === true ? [] : [{ token: [] }],
    ...paramsIn(call.path),
    ...(call.query === undefined ? {} : { querystring: properties(call.query) }),
    ...(call.headers === undefined ? {} : { headers: properties(call.headers) }),
    ...(call.body === undefined ? {} : { body: { content: json(call.body) } }),
    response: { ...Object.fromEntries(successes), ...Object.fromEntries(errors) },
  }
}

/** For tokens of the server. */
export const roleOf = ({ method }: Pick<KafkaCall, 'method'>) => (method === 'GET' ? 'viewer' : 'operator')
