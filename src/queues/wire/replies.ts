/** Answers of the queues as wire messages, with nothing that the contract does not name. */
import type { MessageInitShape } from '@bufbuild/protobuf'
import { formatGoDuration } from '../../core/duration.ts'
import type { ImportOutcome, PartitionStats, QueueInfo, QueueStats, StoredItem } from '../queue.ts'
import { type WireTime, wireEcho, wireFromInstant } from './codec.ts'
import type {
  PeekedItemSchema,
  QueueInfoSchema,
  QueuePartitionStatsSchema,
  QueueStatsResponseSchema,
  StorageItem,
} from './queues_pb.ts'

/** Without `partitions` and `onDeath`. */
export const queueInfo = (queue: QueueInfo): MessageInitShape<typeof QueueInfoSchema> => ({
  queueName: queue.queueName,
  createdAt: wireFromInstant(queue.createdAt),
  updatedAt: wireFromInstant(queue.updatedAt),
  deadQueue: queue.deadQueue,
  reference: queue.reference,
  leaseTimeout: formatGoDuration(queue.leaseTimeoutNs),
  expireTimeout: formatGoDuration(queue.expireTimeoutNs),
  maxAttempts: queue.maxAttempts,
  requestedPartitions: queue.requestedPartitions,
  namespace: queue.namespace,
})

type TimedItem<Time> = Omit<StoredItem, 'id' | 'enqueueAt' | 'death' | ItemTime> & {
  readonly id: string
} & { readonly [Name in ItemTime]?: Time | undefined }
type ItemTime = 'leaseDeadline' | 'expireDeadline' | 'createdAt'

/** The three times are always present: clients read an absent deadline as 1970, a real one. */
function itemFields<Time>(item: TimedItem<Time>, wireTime: (time: Time | undefined) => WireTime) {
  const { id, sourceId, isLeased, attempts, maxAttempts, reference, encoding, kind, payload } = item
  return {
    ...{ id, sourceId, isLeased, attempts, maxAttempts, reference, encoding, kind, payload },
    leaseDeadline: wireTime(item.leaseDeadline),
    expireDeadline: wireTime(item.expireDeadline),
    createdAt: wireTime(item.createdAt),
  }
}

export const storageItem = (item: StoredItem) => itemFields(item, wireFromInstant)

/** A skipped item is echoed as received, less the times that are never sent. */
export const importedItem = (received: StorageItem, outcome: ImportOutcome | undefined) =>
  outcome?.outcome === 'imported' ? storageItem(outcome.item) : itemFields(received, wireEcho)

export const peekedItem = (item: StoredItem): MessageInitShape<typeof PeekedItemSchema> => {
  const { death } = item
  if (death === null) return storageItem(item)
  const [createdAt, diedAt] = [death.createdAt, death.diedAt].map(wireFromInstant)
  return { ...storageItem(item), death: { ...death, createdAt, diedAt } }
}

/** One logical queue, with one entry per partition. */
export const queueStats = ({
  queueName,
  ...stats
}: QueueStats): MessageInitShape<typeof QueueStatsResponseSchema> => ({
  queueName,
  logicalQueues: [{ ...stats, partitions: stats.partitions.map(partitionStats) }],
})

const NS_PER_US = 1_000n

const partitionStats = (stats: PartitionStats): MessageInitShape<typeof QueuePartitionStatsSchema> => ({
  ...stats,
  averageAge: formatGoDuration(stats.averageAgeUs * NS_PER_US),
  averageLeasedAge: formatGoDuration(stats.averageLeasedAgeUs * NS_PER_US),
})
