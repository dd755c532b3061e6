/** Calls of the office API in the OpenAPI document: parameters, body, and the envelope around `data`. */
import Type, { type TSchema } from 'typebox'
import type { Role } from '../core/roles.ts'
import { ERROR, TEXT, TIME } from './shapes.ts'

type Fields = Readonly<Record<string, TSchema>>

interface ObjectSchema {
  readonly properties: Fields
  readonly required?: readonly string[] | undefined
}

export const objectOf = Type.Object

export interface ApiDescription {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly operationId: string
  readonly tag: string
  readonly summary: string
  readonly role: Role | 'open'
  /** Variable parts of the path. Default: texts. */
  readonly params?: Fields
  readonly query?: Fields
  readonly body?: ObjectSchema
  /** Content of `data`; its status is 200 by default. */
  readonly data: TSchema
  readonly statuses?: readonly number[]
  /** Failures beside those that every call can have. */
  readonly failures?: readonly (401 | 404 | 409)[]
  readonly idempotent?: boolean
}

export function paramsIn(path: string): { readonly params?: TSchema } {
  // A colon of the path itself is doubled.
  const names = [...path.replaceAll('::', '').matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  return names.length === 0 ? {} : { params: objectOf(Object.fromEntries(names.map((name) => [name, TEXT]))) }
}

/** Fields of an answer: the schema of each, and where its value comes from. */
export type AnswerFields<Of> = Readonly<Record<string, readonly [schema: TSchema, of: (one: Of) => unknown]>>

export const shapeOf = <Of>(fields: AnswerFields<Of>) =>
  objectOf(Object.fromEntries(Object.entries(fields).map(([name, [schema]]) => [name, schema])))

export const answerOf = <Of, Fields extends AnswerFields<Of>>(fields: Fields, one: Of) =>
  // The cast holds: each name has what its function gives.
  Object.fromEntries(Object.entries(fields).map(([name, [, of]]) => [name, of(one)])) as {
    readonly [Name in keyof Fields]: ReturnType<Fields[Name][1]>
  }

const ENVELOPE = { correlationId: TEXT, timestamp: TIME }

const FAILED = objectOf({
  status: { type: 'string', const: 'Failed' },
  ...ENVELOPE,
  error: ERROR,
})

const SUCCESSES: Readonly<Record<number, string>> = { 201: 'Created', 202: 'Accepted; it goes on' }

const json = (schema: TSchema) => ({ 'application/json': { schema } })

export function describeCall(call: ApiDescription): Readonly<Record<string, unknown>> {
  const { query, body, idempotent = false } = call
  const params = call.params === undefined ? paramsIn(call.path) : { params: objectOf(call.params) }
  const succeeded = objectOf({
    status: { type: 'string', const: 'Succeeded' },
    ...ENVELOPE,
    data: call.data,
  })
  const answers = (call.statuses ?? [200]).map((status) => [
    status,
    { description: SUCCESSES[status] ?? 'OK', content: json(succeeded) },
  ])
  const headers = { 'Idempotency-Key': { type: 'string', minLength: 1, maxLength: 255 } }
  return {
    operationId: call.operationId,
    summary: call.summary,
    description:
      call.role === 'open' ? 'Needs no token.' : `Needs the role ${call.role} once tokens are configured.`,
    tags: [call.tag],
    ...params,
    ...(query === undefined ? {} : { querystring: { type: 'object', properties: notEmpty(query) } }),
    ...(idempotent ? { headers: { type: 'object', properties: headers } } : {}),
    ...(body === undefined ? {} : { body: { type: 'object', required: [], ...body } }),
    response: {
      ...Object.fromEntries(answers),
      ...failuresOf({ ...call, ...params }),
      default: { description: 'Failed; the code says why', content: json(FAILED) },
    },
  }
}

/** An empty parameter is refused (see query.ts). */
const notEmpty = (query: Fields): Fields =>
  Object.fromEntries(
    Object.entries(query).map(([name, schema]) => {
      const isText = 'type' in schema && schema.type === 'string' && !('enum' in schema)
      return [name, isText ? { minLength: 1, ...schema } : schema]
    }),
  )

const FAILURES = {
  400: 'What was asked for cannot be read, or is not allowed; the message names the field',
  401: 'The token is missing or unknown',
  403: 'The token has not the role that is needed, or the page is of another site',
  404: 'There is nothing by this name',
  408: 'The body did not arrive in time',
  409: 'Not in the state that things are in; the message says what they are',
  413: 'The body is too large',
  415: 'The body is no JSON',
  421: 'The server is not served under this name',
  429: 'Too much at once from one place; try again later',
  500: 'A fault of the server, which its log tells more of',
  503: 'The store, or another service that is needed, cannot be reached; try again',
} as const

/** Every status of a failing call; tests compare what is answered with it. */
export function failuresOf({
  role,
  params,
  body,
  failures = [],
}: Pick<ApiDescription, 'role' | 'body' | 'failures'> & { readonly params?: object }) {
  const statuses = new Set<keyof typeof FAILURES>([400, 403, 421, 429, 500, 503, ...failures])
  if (role !== 'open') statuses.add(401)
  if (params !== undefined) statuses.add(404)
  if (body !== undefined) for (const status of [408, 413, 415] as const) statuses.add(status)
  return Object.fromEntries(
    [...statuses].map((status) => [status, { description: FAILURES[status], content: json(FAILED) }]),
  )
}
