/** The calls on queues themselves: create, update, delete, list, look up. */

import type { QueueSettings } from '../queue.ts'
import {
  type QueueInfo,
  QueueInfoSchema,
  QueuesDeleteRequestSchema,
  QueuesInfoRequestSchema,
  QueuesListRequestSchema,
  QueuesListResponseSchema,
} from '../wire/queues_pb.ts'
import { queueInfo } from '../wire/replies.ts'
import { command, type QueueCall, question } from './call.ts'

const settings = (message: QueueInfo): QueueSettings => ({
  queueName: message.queueName,
  leaseTimeout: message.leaseTimeout,
  expireTimeout: message.expireTimeout,
  deadQueue: message.deadQueue,
  reference: message.reference,
  maxAttempts: message.maxAttempts,
  requestedPartitions: message.requestedPartitions,
  namespace: message.namespace,
  onDeath: message.onDeath,
})

export const queueCalls: readonly QueueCall[] = [
  command(
    { path: '/v1/queues.create', summary: 'Create a queue', role: 'admin' },
    QueueInfoSchema,
    (message, { queues }) => queues.create(settings(message)),
  ),
  command(
    { path: '/v1/queues.update', summary: 'Change the settings of a queue', role: 'admin', limit: 512_000 },
    QueueInfoSchema,
    (message, { queues }) => queues.update(settings(message)),
  ),
  command(
    { path: '/v1/queues.delete', summary: 'Delete a queue with everything in it', role: 'admin' },
    QueuesDeleteRequestSchema,
    ({ queueName, force }, { queues }) => queues.delete({ queueName, force }),
  ),
  question(
    { path: '/v1/queues.list', summary: 'List queues by name', role: 'viewer' },
    QueuesListRequestSchema,
    QueuesListResponseSchema,
    async ({ pivot, limit, namespace }, { queues }) => ({
      items: (await queues.list({ pivot, limit, namespace })).map(queueInfo),
    }),
  ),
  question(
    { path: '/v1/queues.info', summary: 'The present settings of a queue', role: 'viewer' },
    QueuesInfoRequestSchema,
    QueueInfoSchema,
    async ({ queueName }, { queues }) => queueInfo(await queues.info(queueName)),
  ),
]
