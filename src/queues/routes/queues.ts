/** Calls on queues, on items in storage, and test control. */
import type { TimeControl } from '../../api/source-http.ts'
import { parseGoDuration, usFromNs } from '../../core/duration.ts'
import { failure } from '../../core/errors.ts'
import { parseTimestamp } from '../../core/timestamp.ts'
import {
  QueueInfoSchema,
  QueuePauseRequestSchema,
  QueuesDeleteRequestSchema,
  QueuesInfoRequestSchema,
  QueuesListRequestSchema,
  QueuesListResponseSchema,
  StorageItemsDeleteRequestSchema,
  StorageItemsImportRequestSchema,
  StorageItemsImportResponseSchema,
  StorageItemsListRequestSchema,
  StorageItemsListResponseSchema,
  type TestClockRequest,
  TestClockRequestSchema,
} from '../wire/queues_pb.ts'
import { importedItem, queueInfo, storageItem } from '../wire/replies.ts'
import { importItem } from '../wire/requests.ts'
import { command, type QueueCall, question } from './call.ts'

export const queueCalls: readonly QueueCall[] = [
  command(
    { path: '/v1/queues.create', summary: 'Create a queue', role: 'admin' },
    QueueInfoSchema,
    (message, { queues }) => queues.create(message),
  ),
  command(
    { path: '/v1/queues.update', summary: 'Change the settings of a queue', role: 'admin', limit: 512_000 },
    QueueInfoSchema,
    (message, { queues }) => queues.update(message),
  ),
  command(
    { path: '/v1/queues.delete', summary: 'Delete a queue with everything in it', role: 'admin' },
    QueuesDeleteRequestSchema,
    (message, { queues }) => queues.delete(message),
  ),
  question(
    { path: '/v1/queues.list', summary: 'List queues by name', role: 'viewer' },
    QueuesListRequestSchema,
    QueuesListResponseSchema,
    async (message, { queues }) => ({ items: (await queues.list(message)).map(queueInfo) }),
  ),
  question(
    { path: '/v1/queues.info', summary: 'The present settings of a queue', role: 'viewer' },
    QueuesInfoRequestSchema,
    QueueInfoSchema,
    async ({ queueName }, { queues }) => queueInfo(await queues.info(queueName)),
  ),
]

const list = (path: string, summary: string, what: 'listItems' | 'listScheduled'): QueueCall =>
  question(
    { path, summary, role: 'viewer' },
    StorageItemsListRequestSchema,
    StorageItemsListResponseSchema,
    async (message, { queues }) => ({ items: (await queues[what](message)).map(storageItem) }),
  )

export const storageCalls: readonly QueueCall[] = [
  list('/v1/storage/items.list', 'List the queued items of a partition by id', 'listItems'),
  list('/v1/storage/scheduled.list', 'List the scheduled items of a partition by id', 'listScheduled'),
  question(
    {
      path: '/v1/storage/items.import',
      summary: 'Put items into a partition as they were elsewhere',
      role: 'operator',
      limit: 64_000_000,
    },
    StorageItemsImportRequestSchema,
    StorageItemsImportResponseSchema,
    async ({ queueName, partition, items }, { queues }) => {
      const outcomes = await queues.importItems({ queueName, partition, items: items.map(importItem) })
      return { items: items.map((item, index) => importedItem(item, outcomes[index])) }
    },
  ),
  command(
    {
      path: '/v1/storage/items.delete',
      summary: 'Delete items, leased or scheduled ones too',
      role: 'admin',
    },
    StorageItemsDeleteRequestSchema,
    (message, { queues }) => queues.deleteItems(message),
  ),
]

/** Only on a server started for tests. */
export const testControlCalls: readonly QueueCall[] = [
  command(
    { path: '/v1/queue.pause', summary: 'Hold or release everything that changes a queue', role: 'admin' },
    QueuePauseRequestSchema,
    ({ queueName, pause }, { queues }) => queues.pause(queueName, pause),
  ),
  command(
    { path: '/v1/test.clock', summary: 'Freeze or advance the clock', role: 'admin' },
    TestClockRequestSchema,
    async (message, { time }) => {
      if (time === undefined) throw new Error('the time of this server cannot be moved')
      await move(time, message)
    },
  ),
]

function move(time: TimeControl, { freeze, advance }: TestClockRequest): Promise<void> {
  if (freeze !== undefined && advance === undefined) {
    const parsed = parseTimestamp(freeze)
    if (!parsed.ok) throw failure('clock_malformed', { reason: parsed.reason })
    return time.freezeClock(parsed.at)
  }
  if (advance !== undefined && freeze === undefined) {
    const parsed = parseGoDuration(advance)
    if (!parsed.ok) throw failure('clock_malformed', { reason: parsed.reason })
    return time.advanceClock(usFromNs(parsed.ns))
  }
  throw failure('clock_malformed', { reason: freeze === undefined ? 'nothing given' : 'both given' })
}
