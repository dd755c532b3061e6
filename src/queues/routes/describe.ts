/** How a call of the queue API looks in the OpenAPI document: both formats, and every code it can answer. */
import type { DescMessage } from '@bufbuild/protobuf'
import { queueErrorCodes } from '../../http/facades.ts'
import { type JsonSchema, messageReference } from '../../http/proto-schema.ts'
import { ReplySchema } from '../wire/queues_pb.ts'
import type { QueueCall } from './call.ts'

const binary = (message: DescMessage): JsonSchema => ({
  type: 'string',
  format: 'binary',
  description: `The message ${message.name} of proto/queues.proto`,
})

const inBothFormats = (message: DescMessage) => ({
  'application/json': { schema: messageReference(message) },
  'application/protobuf': { schema: binary(message) },
})

export function callSchema(call: QueueCall): Readonly<Record<string, unknown>> {
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
