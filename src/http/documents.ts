/** The API described: `/openapi.json` for programs, `/docs` for people. Both are made once. */
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import { VERSION } from '../observe/version.ts'
import { type ApiDocument, docsPage } from './docs-page.ts'
import { PAGE_HEADERS } from './page.ts'
import { COOKIE_NAME } from './session/cookie.ts'

const DESCRIPTION =
  'Below /v1/: durable queues with leases, attempts, schedules and dead queues. Calls are POST with JSON or binary ' +
  'protobuf; the content type says what is sent, Accept what is answered. ' +
  'Below /api/: letters, history, redrives and outboxes, in JSON; every reply is an envelope with a status, a correlation id and a time. ' +
  'Below /kafka/, where it is enabled: dead events of Kafka, with tokens of its own; every answer has an X-Request-Id. ' +
  'At the root: webhooks, with forms and JSON as webhook-broker has them; errors are plain text.'

/** How the routes' schemas become one document; register before the routes. */
export const openapiOptions: FastifyDynamicSwaggerOptions = {
  openapi: {
    openapi: '3.1.0',
    info: { title: 'Bartleby', version: VERSION, description: DESCRIPTION, license: { name: 'Apache-2.0' } },
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
}

/** Adds the two documents to a server. */
export async function documentRoutes(app: FastifyInstance): Promise<void> {
  let json: string | undefined
  let html: string | undefined
  const open = { config: { role: 'viewer' as const }, schema: { hide: true } }

  app.get('/openapi.json', open, async (_request, reply) => {
    json ??= JSON.stringify(app.swagger())
    return reply.header('content-type', 'application/json').send(json)
  })
  app.get('/docs', open, async (_request, reply) => {
    // The page reads the document as anybody would: as JSON.
    html ??= docsPage(JSON.parse(JSON.stringify(app.swagger())) as ApiDocument)
    return reply.headers(PAGE_HEADERS).send(html)
  })
}
