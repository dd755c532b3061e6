/** Calls on the items of one queue. */
import { decodeMessage, encodeMessage, wireFromInstant } from '../wire/codec.ts'
import { leaseReplyBinary, leaseReplyJson } from '../wire/lease-encode.ts'
import {
  QueueClearRequestSchema,
  QueueCompleteRequestSchema,
  QueueExtendRequestSchema,
  QueueExtendResponseSchema,
  QueueLeaseRequestSchema,
  QueueLeaseResponseSchema,
  QueuePeekRequestSchema,
  QueuePeekResponseSchema,
  QueueProduceRequestSchema,
  QueueProduceWithIdsRequestSchema,
  QueueProduceWithIdsResponseSchema,
  QueueReloadRequestSchema,
  QueueRetryRequestSchema,
  QueueStatsRequestSchema,
  QueueStatsResponseSchema,
  ReplySchema,
} from '../wire/queues_pb.ts'
import { peekedItem, queueStats } from '../wire/replies.ts'
import { produceRequest, retryItem } from '../wire/requests.ts'
import { command, type QueueCall, question, written } from './call.ts'

/** Bodies with little more than a queue's name. */
const SMALL = 512

const produce: QueueCall = {
  path: '/v1/queue.produce',
  summary: 'Add items to a queue',
  role: 'operator',
  limit: 'produce',
  request: QueueProduceRequestSchema,
  reply: ReplySchema,
  async answer(body, format, { queues }) {
    await queues.produce(produceRequest(body, format, false))
    return written
  },
}

const produceWithIds: QueueCall = {
  path: '/v1/queue.produceWithIds',
  summary: 'Add items to a queue and learn their ids; a repeated dedupe key adds nothing',
  role: 'operator',
  limit: 'produce',
  request: QueueProduceWithIdsRequestSchema,
  reply: QueueProduceWithIdsResponseSchema,
  async answer(body, format, { queues }) {
    const { partition, items } = await queues.produce(produceRequest(body, format, true))
    const receipt = { partition, items: [...items] }
    return (replyFormat) => encodeMessage(QueueProduceWithIdsResponseSchema, receipt, replyFormat)
  },
}

const lease: QueueCall = {
  path: '/v1/queue.lease',
  summary: 'Lease the next items of a queue, waiting for one if there is none',
  role: 'operator',
  limit: SMALL,
  request: QueueLeaseRequestSchema,
  reply: QueueLeaseResponseSchema,
  async answer(body, format, { queues, signal }) {
    const batch = await queues.lease(decodeMessage(QueueLeaseRequestSchema, body, format), signal())
    return (replyFormat) => (replyFormat === 'protobuf' ? leaseReplyBinary(batch) : leaseReplyJson(batch))
  },
}

export const itemCalls: readonly QueueCall[] = [
  produce,
  produceWithIds,
  lease,
  command(
    { path: '/v1/queue.complete', summary: 'Remove leased items: their work is done', role: 'operator' },
    QueueCompleteRequestSchema,
    (message, { queues }) => queues.complete(message),
  ),
  command(
    {
      path: '/v1/queue.retry',
      summary: 'Give leased items back: at once, later, or to the dead queue',
      role: 'operator',
    },
    QueueRetryRequestSchema,
    ({ queueName, partition, items }, { queues }) =>
      queues.retry({ queueName, partition, items: items.map(retryItem) }),
  ),
  question(
    { path: '/v1/queue.extend', summary: 'Lengthen leases that you hold', role: 'operator' },
    QueueExtendRequestSchema,
    QueueExtendResponseSchema,
    async (message, { queues }) => ({ leaseDeadline: wireFromInstant(await queues.extend(message)) }),
  ),
  question(
    { path: '/v1/queue.peek', summary: 'Look at the next items without leasing them', role: 'viewer' },
    QueuePeekRequestSchema,
    QueuePeekResponseSchema,
    async (message, { queues }) => ({ items: (await queues.peek(message)).map(peekedItem) }),
  ),
  question(
    {
      path: '/v1/queue.stats',
      summary: 'Count what lies in a queue and who waits',
      role: 'viewer',
      limit: SMALL,
    },
    QueueStatsRequestSchema,
    QueueStatsResponseSchema,
    async ({ queueName }, { queues }) => queueStats(await queues.stats(queueName)),
  ),
  command(
    { path: '/v1/queue.clear', summary: 'Remove all items of a queue', role: 'admin', limit: SMALL },
    QueueClearRequestSchema,
    (message, { queues }) => queues.clear(message),
  ),
  command(
    {
      path: '/v1/queue.reload',
      summary: 'Read counts and deadlines from the store again',
      role: 'operator',
      limit: SMALL,
    },
    QueueReloadRequestSchema,
    ({ queueName }, { queues }) => queues.reload(queueName),
  ),
]
