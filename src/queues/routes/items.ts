/** The calls on the items of one queue: produce, lease, complete, retry, and our own beside them. */

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
import { peekedItem, produceReceipt, queueStats } from '../wire/replies.ts'
import { completeRequest, produceRequest, retryItem } from '../wire/requests.ts'
import { command, type QueueCall, question, written } from './call.ts'

/** Calls that carry little more than a queue's name. */
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
    const receipt = await queues.produce(produceRequest(body, format, true))
    return (replyFormat) =>
      encodeMessage(QueueProduceWithIdsResponseSchema, produceReceipt(receipt), replyFormat)
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
    const { queueName, batchSize, clientId, requestTimeout } = decodeMessage(
      QueueLeaseRequestSchema,
      body,
      format,
    )
    const batch = await queues.lease({ queueName, batchSize, clientId, requestTimeout }, signal())
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
    (message, { queues }) => queues.complete(completeRequest(message)),
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
    async ({ queueName, partition, ids, leaseTimeout }, { queues }) => {
      const timeout = leaseTimeout === '' ? {} : { leaseTimeout }
      const deadline = await queues.extend({ queueName, partition, ids, ...timeout })
      return { leaseDeadline: wireFromInstant(deadline) }
    },
  ),
  question(
    { path: '/v1/queue.peek', summary: 'Look at the next items without leasing them', role: 'viewer' },
    QueuePeekRequestSchema,
    QueuePeekResponseSchema,
    async ({ queueName, partition, limit }, { queues }) => {
      const items = await queues.peek({ queueName, partition, ...(limit === 0 ? {} : { limit }) })
      return { items: items.map(peekedItem) }
    },
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
    ({ queueName, queue, scheduled, destructive }, { queues }) =>
      queues.clear({ queueName, queue, scheduled, destructive }),
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
