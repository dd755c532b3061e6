/** The calls on items as they lie in the store: list, import, delete. */
import {
  StorageItemsDeleteRequestSchema,
  StorageItemsImportRequestSchema,
  StorageItemsImportResponseSchema,
  StorageItemsListRequestSchema,
  StorageItemsListResponseSchema,
} from '../wire/queues_pb.ts'
import { importedItem, storageItem } from '../wire/replies.ts'
import { importItem } from '../wire/requests.ts'
import { command, type QueueCall, question } from './call.ts'

export const storageCalls: readonly QueueCall[] = [
  question(
    { path: '/v1/storage/items.list', summary: 'List the queued items of a partition by id', role: 'viewer' },
    StorageItemsListRequestSchema,
    StorageItemsListResponseSchema,
    async ({ queueName, partition, pivot, limit }, { queues }) => {
      const items = await queues.listItems({ queueName, partition, pivot, limit })
      return { items: items.map(storageItem) }
    },
  ),
  question(
    {
      path: '/v1/storage/scheduled.list',
      summary: 'List the scheduled items of a partition by id',
      role: 'viewer',
    },
    StorageItemsListRequestSchema,
    StorageItemsListResponseSchema,
    async ({ queueName, partition, pivot, limit }, { queues }) => {
      const items = await queues.listScheduled({ queueName, partition, pivot, limit })
      return { items: items.map(storageItem) }
    },
  ),
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
    ({ queueName, partition, ids }, { queues }) => queues.deleteItems({ queueName, partition, ids }),
  ),
]
