/** How a call of the office API looks in the OpenAPI document: its parameters, its body, and the envelope around `data`. */
import type { Role } from './auth.ts'
import type { JsonSchema } from './proto-schema.ts'

type Fields = Readonly<Record<string, JsonSchema>>

export interface ApiDescription {
  readonly operationId: string
  readonly tag: string
  readonly summary: string
  readonly role: Role | 'open'
  readonly params?: Fields
  readonly query?: Fields
  /** The fields of the body, and which of them must be there. */
  readonly body?: { readonly fields: Fields; readonly required?: readonly string[] }
  /** What `data` holds, and the status it comes with: 200 unless said otherwise. */
  readonly data: JsonSchema
  readonly statuses?: readonly number[]
  /** Whether an `Idempotency-Key` header is looked at. */
  readonly idempotent?: boolean
}

export const TEXT: JsonSchema = { type: 'string' }
export const TEXT_OR_NULL: JsonSchema = { type: ['string', 'null'] }
export const INTEGER: JsonSchema = { type: 'integer' }
export const TIME: JsonSchema = { type: 'string', format: 'date-time' }
export const TIME_OR_NULL: JsonSchema = { type: ['string', 'null'], format: 'date-time' }

/** An object of these fields, all of them present. */
export const objectOf = (fields: Fields): JsonSchema => ({
  type: 'object',
  required: Object.keys(fields),
  properties: fields,
})

/** A page of a list. */
export const pageOf = (item: JsonSchema): JsonSchema =>
  objectOf({ items: { type: 'array', items: item }, continuationToken: TEXT_OR_NULL })

/** The parameters of every list that has pages. */
export const PAGE_QUERY = {
  limit: { type: 'integer', minimum: 1, maximum: 100, default: 50 },
  continuationToken: { type: 'string', description: 'Of the page before, asked with the same filters' },
} as const satisfies Fields

/** A time as a filter: a date-time with a zone, or a date. */
export const DATE: JsonSchema = {
  type: 'string',
  description: 'ISO 8601 with a zone, or a date (midnight UTC)',
}

const ENVELOPE = { correlationId: TEXT, timestamp: TIME }

const FAILED = objectOf({
  status: { type: 'string', const: 'Failed' },
  ...ENVELOPE,
  error: {
    type: 'object',
    required: ['code', 'message'],
    properties: { code: TEXT, message: TEXT, details: { type: 'object' } },
  },
})

const json = (schema: JsonSchema) => ({ 'application/json': { schema } })

/** The schema of a call, for its route. */
export function describeCall(call: ApiDescription): Readonly<Record<string, unknown>> {
  const { params, query, body, idempotent = false } = call
  const succeeded = objectOf({
    status: { type: 'string', const: 'Succeeded' },
    ...ENVELOPE,
    data: call.data,
  })
  const answers = (call.statuses ?? [200]).map((status) => [
    status,
    { description: status === 201 ? 'Created' : 'OK', content: json(succeeded) },
  ])
  const headers = { 'Idempotency-Key': { type: 'string', minLength: 1, maxLength: 255 } }
  return {
    operationId: call.operationId,
    summary: call.summary,
    description:
      call.role === 'open' ? 'Needs no token.' : `Needs the role ${call.role} once tokens are configured.`,
    tags: [call.tag],
    ...(params === undefined ? {} : { params: objectOf(params) }),
    ...(query === undefined ? {} : { querystring: { type: 'object', properties: query } }),
    ...(idempotent ? { headers: { type: 'object', properties: headers } } : {}),
    ...(body === undefined
      ? {}
      : { body: { type: 'object', required: body.required ?? [], properties: body.fields } }),
    response: {
      ...Object.fromEntries(answers),
      default: { description: 'Failed; the code says why', content: json(FAILED) },
    },
  }
}
