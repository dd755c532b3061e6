/**
 * The queue API on HTTP. Everything about a request happens in the order of the contract: method and
 * `Authorization` header (the server's gate), path, body up to its limit, content type, operation, `Accept`.
 * Calls run in Fastify's first hook: its own body parsing would judge the content type before the body.
 */
import type { FastifyInstance } from 'fastify'
import { unreachable } from '../http/api-routes.ts'
import { messageSchema } from '../http/proto-schema.ts'
import { answering, type Served } from './routes/call.ts'
import { callSchema } from './routes/describe.ts'
import { itemCalls } from './routes/items.ts'
import { queueCalls } from './routes/queues.ts'
import { storageCalls } from './routes/storage.ts'
import { testControlCalls } from './routes/test-control.ts'
import { file_queues } from './wire/queues_pb.ts'

export interface QueueRoutesOptions extends Served {
  readonly maxProduceBytes: number
}

/** Adds the calls of the queue API to a server. */
export async function queueRoutes(app: FastifyInstance, options: QueueRoutesOptions): Promise<void> {
  // The schemas describe the calls in OpenAPI; the codecs are what checks a body.
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => (payload) => JSON.stringify(payload))
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
