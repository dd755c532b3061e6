/** Kafka on the office API: `/api/kafka`. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type ApiCall, type ApiRequest, type ApiScope, ok, serveApi, unreachable } from '../../api/calls.ts'
import { failuresOf } from '../../api/describe.ts'
import { asFailure, correlationIdOf, sendEnvelopeError } from '../../api/envelope.ts'
import { optionalText, refuseUnknownFields, requiredText } from '../../api/json-body.ts'
import { textUpTo } from '../../api/shapes.ts'
import { failure } from '../../core/errors.ts'
import { EVENT, eventOnWire, OVERVIEW, overviewOnWire, PLACED, placeOnWire } from './admin-view.ts'
import { KAFKA } from './event.ts'
import type { Assignment } from './reassign.ts'
import type { ServedKafka } from './routes/call.ts'
import { isUuidV4 } from './settings/settings.ts'

const EVENT_KEY = { dlqId: { type: 'string', format: 'uuid' } }

/** Of topics. */
const MAX_NAME = 249

const REASSIGN = {
  service: { ...textUpTo(MAX_NAME), description: 'The name or an alias of a service' },
  topic: {
    ...textUpTo(MAX_NAME),
    type: ['string', 'null'],
    description: 'The original topic; left out, the one that the record says',
  },
}

interface KafkaAdminRoutesOptions extends ApiScope {
  /** Null when Kafka is off. */
  readonly kafka: ServedKafka | null
}

export async function kafkaAdminRoutes(
  app: FastifyInstance,
  options: KafkaAdminRoutesOptions,
): Promise<void> {
  serveApi(app, options, callsOf(options.kafka))
  app.route({
    method: 'GET',
    url: '/api/kafka/events/:dlqId/value',
    config: { role: 'viewer' },
    schema: VALUE_SCHEMA,
    onRequest: (request, reply) => void sendValue(options, request, reply),
    handler: unreachable,
  })
}

const callsOf = (kafka: ServedKafka | null): readonly ApiCall[] => [
  {
    method: 'GET',
    path: '/api/kafka',
    role: 'viewer',
    operationId: 'kafka.overview',
    tag: KAFKA,
    summary: 'The services with their topics, and how intake stands',
    data: OVERVIEW,
    answer: async () =>
      ok(kafka === null ? { enabled: false } : overviewOnWire(kafka.calls.settings, kafka.status())),
  },
  {
    method: 'GET',
    path: '/api/kafka/events/:dlqId',
    role: 'viewer',
    operationId: 'kafka.event',
    tag: KAFKA,
    summary: 'A dead event with its bytes, its headers and its earlier deaths',
    params: EVENT_KEY,
    data: EVENT,
    failures: [409],
    answer: async ({ params }) => {
      const id = dlqIdOf(params)
      const found = await enabled(kafka).calls.reader.named(id)
      if (found === null) throw unknownEvent(id)
      return ok(eventOnWire(found))
    },
  },
  {
    method: 'POST',
    path: '/api/kafka/events/:dlqId/reassign',
    role: 'operator',
    operationId: 'kafka.reassign',
    tag: KAFKA,
    summary: 'Give a dead event to a service, and say from which topic it came',
    params: EVENT_KEY,
    body: { properties: REASSIGN, required: ['service'] },
    data: PLACED,
    failures: [409],
    answer: async (request) => {
      const dlqId = dlqIdOf(request.params)
      const assignment = assignmentOf(request)
      const caller = { actor: request.caller.name, requestId: request.correlationId }
      return ok(placeOnWire(await enabled(kafka).reassign(dlqId, assignment, caller)))
    },
  },
]

function enabled(kafka: ServedKafka | null): ServedKafka {
  if (kafka === null) throw failure('kafka_not_enabled')
  return kafka
}

const unknownEvent = (dlqId: string) => failure('letter_unknown', { engine: KAFKA, rowKey: dlqId })

function dlqIdOf({ dlqId = '' }: Readonly<Record<string, string>>): string {
  if (!isUuidV4(dlqId)) throw unknownEvent(dlqId.slice(0, MAX_NAME).toWellFormed())
  return dlqId.toLowerCase()
}

/** The settings decide who has these names. */
function assignmentOf({ body: { fields } }: ApiRequest): Assignment {
  refuseUnknownFields(fields, Object.keys(REASSIGN))
  return {
    service: requiredText(fields, 'service', { max: MAX_NAME }),
    topic: optionalText(fields, 'topic', { max: MAX_NAME }),
  }
}

const BYTES = 'application/octet-stream'

const VALUE_SCHEMA = {
  operationId: 'kafka.value',
  summary: 'The value of a dead event, byte for byte, also of one that was superseded',
  description: 'Needs the role viewer once tokens are configured. In no envelope; errors are in one.',
  tags: [KAFKA],
  params: { type: 'object', required: ['dlqId'], properties: EVENT_KEY },
  response: {
    200: { description: 'OK', content: { [BYTES]: { schema: { type: 'string', format: 'binary' } } } },
    204: { description: 'The value is null', type: 'null' },
    ...failuresOf({ role: 'viewer', params: EVENT_KEY, failures: [409] }),
  },
}

/** Never shown by a browser, whatever its type says. */
async function sendValue(
  { kafka, clock, stopping }: KafkaAdminRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  try {
    if (stopping()) throw failure('service_stopping')
    // Fastify gives the named parts of a path as texts.
    const id = dlqIdOf(request.params as Readonly<Record<string, string>>)
    const found = await enabled(kafka).calls.reader.value(id)
    if (found === null) throw unknownEvent(id)
    const { value } = found
    reply
      .code(value === null ? 204 : 200)
      .header('x-correlation-id', correlationIdOf(request))
      .header('x-content-type-options', 'nosniff')
      .header('cache-control', 'no-store')
    if (value === null) {
      reply.send()
      return
    }
    reply
      .header('content-type', BYTES)
      .header('content-disposition', `attachment; filename="${id}.bin"`)
      .header('content-security-policy', "default-src 'none'; sandbox")
      .send(Buffer.from(value.buffer, value.byteOffset, value.byteLength))
  } catch (thrown) {
    const error = asFailure(thrown)
    if (error.code === 'internal') request.log.error({ err: thrown, path: request.url }, 'call failed')
    sendEnvelopeError(request, reply, clock, error)
  }
}
