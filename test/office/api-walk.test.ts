/**
 * The office API held against its own description: what the OpenAPI document does not allow is refused, by name, and no call
 * answers a status that the document does not have.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ServerHere, startServer } from '../world/server.ts'
import { type FreshStore, freshSqlite } from '../world/stores.ts'

interface Schema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly string[]
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, Schema>>
}

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[]
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: Schema } } }
  readonly responses: Readonly<Record<string, unknown>>
}

interface Call {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

/** A body that each call takes, as far as it can be read; for those that need one. */
const BODIES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'letters.capture': { engine: 'http', originalMessage: '{}', errorMessage: 'no key', sourceId: 'walk' },
  'letters.change': { status: 'Expired' },
  'letters.expire': { olderThanDays: 90_000 },
  'history.record': { engine: 'http', operation: 'walk', status: 'Succeeded', durationMs: 1 },
  'redrives.plan': { action: 'move', filter: { engine: 'http' }, queue: 'nowhere' },
  'redrives.rate': { rate: 1 },
  'kafka.reassign': { service: 'orders' },
  'session.begin': { token: 'x' },
}

/** Ids of nothing, where they have a form: what is no id is not looked at further. */
const NOWHERE: Readonly<Record<string, string>> = {
  id: 'c00000000000000000g0',
  dlqId: '0d6e1f3c-6f0b-4a52-9a3e-6a1f5d1c2b3a',
}

let store: FreshStore
let server: ServerHere
let calls: readonly Call[] = []

beforeAll(async () => {
  store = await freshSqlite()
  server = await startServer({ store: store.url })
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  }
  calls = Object.entries(document.paths)
    .filter(([path]) => path.startsWith('/api/') && path !== '/api/events')
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        operation,
      })),
    )
})
afterAll(async () => {
  await server?.stop()
  await store?.dispose()
})

interface Answer {
  readonly status: number
  readonly parameter: string | undefined
  readonly text: string
}

/** Calls it, about things that are not there; its status must be one of the document. */
async function ask(
  { method, path, operation }: Call,
  query: Readonly<Record<string, string>>,
  body: object | undefined,
): Promise<Answer> {
  const place = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => NOWHERE[name] ?? 'nothing')
  const response = await fetch(`${server.url}${place}?${new URLSearchParams(query)}`, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  const text = await response.text()
  expect(Object.keys(operation.responses), `${method} ${path}: ${text}`).toContain(String(response.status))
  const { error } = (text.startsWith('{') ? JSON.parse(text) : {}) as {
    readonly error?: { readonly details?: { readonly parameter?: string; readonly status?: string } }
  }
  return { status: response.status, parameter: error?.details?.parameter, text }
}

interface Field {
  readonly call: Call
  /** From the body down to it. */
  readonly path: readonly string[]
  readonly schema: Schema
}

function* fieldsOf(call: Call, schema: Schema | undefined, path: readonly string[] = []): Generator<Field> {
  for (const [name, field] of Object.entries(schema?.properties ?? {})) {
    yield { call, path: [...path, name], schema: field }
    yield* fieldsOf(call, field, [...path, name])
  }
}

const fields = (): readonly Field[] =>
  calls.flatMap((call) => [...fieldsOf(call, call.operation.requestBody?.content['application/json'].schema)])

/** The body of a call with another value at a place. */
function withValue(body: unknown, [name = '', ...rest]: readonly string[], value: unknown): object {
  const members = typeof body === 'object' && body !== null ? { ...body } : {}
  const inner: unknown = Reflect.get(members, name)
  return { ...members, [name]: rest.length === 0 ? value : withValue(inner, rest, value) }
}

const set = ({ call, path }: Field, value: unknown): Promise<Answer> =>
  ask(call, {}, withValue(BODIES[call.operation.operationId], path, value))

/** What a schema does not allow. */
function* refusedBy({ type, minLength, maxLength, minimum, maximum, ...schema }: Schema): Generator<unknown> {
  const is = (name: string) => type === name || (Array.isArray(type) && type.includes(name))
  if (type !== undefined && !is('null')) yield null
  if (schema.enum !== undefined) yield 'nonsense'
  if (is('string')) {
    yield 7
    if (minLength === 1) yield ''
    if (maxLength !== undefined) yield 'x'.repeat(maxLength + 1)
  }
  if (is('integer') || is('number')) {
    yield 'seven'
    if (is('integer')) yield 1.5
    if (minimum !== undefined) yield minimum - 1
    if (maximum !== undefined) yield maximum + 1
  }
}

describe('the calls of the office', () => {
  it('are all there', () => {
    expect(calls.length).toBeGreaterThan(35)
    expect(fields().length).toBeGreaterThan(40)
  })

  it('refuse null for every field of a body that cannot be null, and name it', async () => {
    const nameless: string[] = []
    for (const field of fields()) {
      const { type } = field.schema
      if (typeof type !== 'string') continue
      const { status, parameter } = await set(field, null)
      if (status !== 400 || parameter !== field.path.join('.'))
        nameless.push(`${field.call.operation.operationId} ${field.path.join('.')}: ${status} ${parameter}`)
    }
    expect(nameless).toEqual([])
  })

  it('refuse what their schema does not allow', async () => {
    const taken: string[] = []
    for (const field of fields()) {
      for (const value of refusedBy(field.schema)) {
        const { status } = await set(field, value)
        const shown = JSON.stringify(value).slice(0, 40)
        if (status !== 400)
          taken.push(`${field.call.operation.operationId} ${field.path.join('.')} = ${shown}: ${status}`)
      }
    }
    expect(taken).toEqual([])
  })

  it('say of every text that they refuse when it is empty', async () => {
    const unsaid: string[] = []
    for (const field of fields()) {
      const { type, minLength = 0, enum: known, ...rest } = field.schema
      if (type !== 'string' || minLength > 0 || known !== undefined || 'format' in rest) continue
      const { status, parameter } = await set(field, '')
      if (status === 400 && parameter === field.path.join('.'))
        unsaid.push(`${field.call.operation.operationId} ${field.path.join('.')}`)
    }
    expect(unsaid).toEqual([])
  })

  it('refuse parameters that their schema does not allow', async () => {
    const taken: string[] = []
    for (const call of calls) {
      for (const { name, in: place, schema } of call.operation.parameters ?? []) {
        if (place !== 'query') continue
        for (const value of refusedBy({ type: 'string', ...schema })) {
          if (typeof value !== 'string' && typeof value !== 'number') continue
          // Every parameter is a text on its way.
          if (schema.type === 'string' && value === 7 && schema.enum === undefined) continue
          const { status } = await ask(call, { [name]: String(value) }, undefined)
          if (status !== 400) taken.push(`${call.operation.operationId} ${name}=${value}: ${status}`)
        }
      }
    }
    expect(taken).toEqual([])
  })

  it('answer statuses that are documented, about nothing and with nothing', async () => {
    for (const call of calls) {
      await ask(call, {}, BODIES[call.operation.operationId])
      await ask(call, { unheard: 'of' }, undefined)
      if (call.operation.requestBody !== undefined) await ask(call, {}, {})
    }
  })
})
