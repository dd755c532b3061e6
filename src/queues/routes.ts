/**
 * The queue API on HTTP. A request is handled in the contract's order: method and `Authorization` (the server's gate), path, body up to
 * its limit, content type, operation, `Accept`. Calls run in Fastify's first hook, because its body parsing would judge the content type
 * before the body.
 */
import type { DescMessage } from '@bufbuild/protobuf'
import type { FastifyInstance } from 'fastify'
import { schemasOnlyDescribe, unreachable } from '../api/calls.ts'
import { type JsonSchema, messageReference, messageSchema } from '../api/proto-schema.ts'
import { answering, type QueueCall, type Served } from './routes/call.ts'
import { itemCalls } from './routes/items.ts'
import { queueCalls, storageCalls, testControlCalls } from './routes/queues.ts'
import { queueErrorCodes } from './routes/reply.ts'
import { file_queues, ReplySchema } from './wire/queues_pb.ts'

export async function queueRoutes(
  app: FastifyInstance,
  options: Served & { readonly maxProduceBytes: number },
): Promise<void> {
  schemasOnlyDescribe(app)
  for (const message of file_queues.messages) app.addSchema(messageSchema(message))

  const served = [...itemCalls, ...queueCalls, ...storageCalls]
  for (const call of options.time === undefined ? served : [...served, ...testControlCalls]) {
    const limit = call.limit === 'produce' ? options.maxProduceBytes : call.limit
    app.route({
      method: 'POST',
      url: call.path,
      config: { role: call.role },
      schema: callSchema(call),
      onRequest: answering(call, limit, options),
      handler: unreachable,
    })
  }
}

const binary = (message: DescMessage): JsonSchema => ({
  type: 'string',
  format: 'binary',
  description: `The message ${message.name} of proto/queues.proto`,
})

const inBothFormats = (message: DescMessage) => ({
  'application/json': { schema: messageReference(message) },
  'application/protobuf': { schema: binary(message) },
})

function callSchema(call: QueueCall): Readonly<Record<string, unknown>> {
  const errors = queueErrorCodes().map(([code, text]) => [
    code,
    { description: text, content: inBothFormats(ReplySchema) },
  ])
  return {
    operationId: call.path.slice('/v1/'.length),
    summary: call.summary,
    description: `Needs the role ${call.role} once tokens are configured.`,
    tags: [tagOf(call.path)],
    body: { content: inBothFormats(call.request) },
    response: {
      200: { description: 'OK', content: inBothFormats(call.reply) },
      ...Object.fromEntries(errors),
    },
  }
}

function tagOf(path: string): string {
  if (path.startsWith('/v1/queues.')) return 'queues'
  if (path.startsWith('/v1/storage/')) return 'storage'
  return path.startsWith('/v1/test.') ? 'test control' : 'items'
}
