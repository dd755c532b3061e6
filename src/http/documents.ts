/** `/openapi.json` for programs, `/docs` for people, both made once. The page needs no script, so its policy forbids all. */
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import { VERSION } from '../core/version.ts'
import type { Facades } from './facades.ts'
import { escapeHtml, PAGE_HEADERS, page } from './page.ts'
import { COOKIE_NAME } from './session/sessions.ts'

/** Register before the routes. */
export const openapiOptions = (facades: Facades): FastifyDynamicSwaggerOptions => ({
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'Bartleby',
      version: VERSION,
      description: facades.all.flatMap(({ about }) => about ?? []).join(' '),
      license: { name: 'Apache-2.0' },
    },
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer' },
        session: { type: 'apiKey', in: 'cookie', name: COOKIE_NAME },
      },
    },
    security: [{}, { token: [] }, { session: [] }],
  },
  refResolver: {
    // Schemas keep the name of their message.
    buildLocalReference: (json, _baseUri, _fragment, index) =>
      typeof json.$id === 'string' ? json.$id : `schema-${index}`,
  },
})

export async function documentRoutes(app: FastifyInstance): Promise<void> {
  let json: string | undefined
  let html: string | undefined
  const open = { config: { role: 'viewer' as const }, schema: { hide: true } }

  app.get('/openapi.json', open, async (_request, reply) => {
    json ??= JSON.stringify(app.swagger())
    return reply.header('content-type', 'application/json').send(json)
  })
  app.get('/docs', open, async (_request, reply) => {
    // As anybody would read it: as JSON.
    html ??= docsPage(JSON.parse(JSON.stringify(app.swagger())) as ApiDocument)
    return reply.headers(PAGE_HEADERS).send(html)
  })
}

interface Operation {
  readonly summary?: string
  readonly description?: string
  readonly tags?: readonly string[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Content }
  readonly responses?: Readonly<Record<string, { readonly description?: string; readonly content?: Content }>>
}

type JsonSchema = Readonly<Record<string, unknown>>

interface Parameter {
  readonly name: string
  readonly in: string
  readonly description?: string
  readonly schema?: JsonSchema
}

type Content = Readonly<Record<string, { readonly schema?: JsonSchema }>>

/** The part of an OpenAPI document that the page shows. */
interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string }
  readonly paths?: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components?: { readonly schemas?: Readonly<Record<string, JsonSchema>> }
}

function docsPage(document: ApiDocument): string {
  const { title, version, description = '' } = document.info
  const schemas = document.components?.schemas ?? {}
  const operations = Object.entries(document.paths ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  const tags = [...new Set(operations.map(({ operation }) => operation.tags?.[0] ?? 'other'))]
  const sections = tags.map((tag) => {
    const shown = operations.filter(({ operation }) => (operation.tags?.[0] ?? 'other') === tag)
    return `<h2>${escapeHtml(tag)}</h2>${shown.map((entry) => operationHtml(entry, schemas)).join('')}`
  })
  const messages = Object.entries(schemas).map(
    ([name, schema]) => `<h3 id="${escapeHtml(name)}">${escapeHtml(name)}</h3>${fieldsHtml(schema)}`,
  )
  return page(
    `${title} API`,
    `<main><h1>${escapeHtml(title)} API ${escapeHtml(version)}</h1><p>${escapeHtml(description)}</p>
<p>The same as a document: <a href="/openapi.json">/openapi.json</a></p>
${sections.join('')}<h2>Messages</h2>${messages.join('')}</main>`,
  )
}

interface Entry {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

function operationHtml({ method, path, operation }: Entry, schemas: Readonly<Record<string, JsonSchema>>) {
  const body = operation.requestBody?.content['application/json']?.schema
  const answers = Object.entries(operation.responses ?? {}).map(
    ([code, { description, content }]) =>
      `<tr><th>${escapeHtml(code)}</th><td>${escapeHtml(description ?? '')}</td><td>${contentHtml(content)}</td></tr>`,
  )
  return `<details id="${escapeHtml(`${method} ${path}`)}"><summary><code>${method} ${escapeHtml(path)}</code> - ${escapeHtml(operation.summary ?? '')}</summary>
<p>${escapeHtml(operation.description ?? '')}</p>
${parametersHtml(operation.parameters ?? [])}
${body === undefined ? '' : `<h3>Takes ${typeHtml(body)}</h3>${fieldsHtml(resolve(body, schemas))}`}
<h3>Answers</h3><table>${answers.join('')}</table>
<h3>Try it</h3><pre>${escapeHtml(curl(method, path, body, schemas))}</pre></details>`
}

function parametersHtml(parameters: readonly Parameter[]): string {
  if (parameters.length === 0) return ''
  const rows = parameters.map(
    ({ name, in: place, description = '', schema = {} }) =>
      `<tr><th><code>${escapeHtml(name)}</code></th><td>${escapeHtml(place)}</td><td>${typeHtml(schema)}</td><td>${escapeHtml(description)}</td></tr>`,
  )
  return `<h3>Parameters</h3><table>${rows.join('')}</table>`
}

function contentHtml(content: Content | undefined): string {
  return Object.entries(content ?? {})
    .map(([type, { schema }]) => `${escapeHtml(type)}: ${schema === undefined ? '' : typeHtml(schema)}`)
    .join('<br>')
}

function fieldsHtml(schema: JsonSchema): string {
  const rows = Object.entries(properties(schema)).map(
    ([name, field]) => `<tr><th><code>${escapeHtml(name)}</code></th><td>${typeHtml(field)}</td></tr>`,
  )
  return rows.length === 0 ? '<p>No fields.</p>' : `<table>${rows.join('')}</table>`
}

const isSchema = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null

function properties(schema: JsonSchema): Readonly<Record<string, JsonSchema>> {
  if (!isSchema(schema.properties)) return {}
  const fields = Object.entries(schema.properties).filter((entry): entry is [string, JsonSchema] =>
    isSchema(entry[1]),
  )
  return Object.fromEntries(fields)
}

const referenced = (schema: JsonSchema): string | undefined =>
  typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined

const resolve = (schema: JsonSchema, schemas: Readonly<Record<string, JsonSchema>>): JsonSchema =>
  schemas[referenced(schema) ?? ''] ?? schema

function typeHtml(schema: JsonSchema): string {
  const name = referenced(schema)
  if (name !== undefined) return `<a href="#${escapeHtml(name)}">${escapeHtml(name)}</a>`
  if (schema.type === 'array' && isSchema(schema.items)) return `list of ${typeHtml(schema.items)}`
  const detail = schema.format === 'byte' ? 'base64' : schema.format
  return escapeHtml(detail === undefined ? String(schema.type ?? 'any') : `${schema.type} (${detail})`)
}

/** Depth to which an example follows messages. */
const EXAMPLE_DEPTH = 3

function example(schema: JsonSchema, schemas: Readonly<Record<string, JsonSchema>>, depth = 0): unknown {
  const known = resolve(schema, schemas)
  if (known.type === 'object') {
    const fields = depth < EXAMPLE_DEPTH ? Object.entries(properties(known)) : []
    return Object.fromEntries(fields.map(([name, field]) => [name, example(field, schemas, depth + 1)]))
  }
  if (known.type === 'array' && isSchema(known.items)) return [example(known.items, schemas, depth + 1)]
  if (known.type === 'boolean') return false
  if (known.type === 'integer') return 1
  if (known.format === 'date-time') return '2027-01-01T00:00:00Z'
  return known.format === 'byte' ? 'aGk=' : 'text'
}

function curl(
  method: string,
  path: string,
  body: JsonSchema | undefined,
  schemas: Readonly<Record<string, JsonSchema>>,
): string {
  const address = `http://127.0.0.1:1853${path}`
  if (body === undefined) return `curl ${address}`
  const json = JSON.stringify(example(body, schemas))
  return `curl -X ${method} ${address} \\\n  -H 'Content-Type: application/json' \\\n  -d '${json}'`
}
