/**
 * Types of the queue client: the library's words, so that code moves between the two. Times are `Date`s, durations Go
 * text ("90s", "5m"), as on the wire.
 */
import type {
  Batch,
  DeathRecord,
  ForItems,
  GivenBack,
  Imported,
  ImportOutcomeOf,
  Leased,
  OnDeath,
  PartitionDepth,
  QueueFacts,
  NewItem as ShapeOfItem,
  ProduceRequest as ShapeOfProduce,
  StatsOf,
  Stored,
} from '../queues/shapes.ts'
import type { Time } from './times.ts'

export type {
  ClearRequest,
  ExtendRequest,
  ItemContent,
  ItemIds,
  LeaseRequest,
  ListItemsRequest,
  ListRequest,
  PeekRequest,
} from '../queues/shapes.ts'

export interface QueueSettings
  extends Pick<Queue, 'queueName'>,
    Partial<Omit<Queue, 'queueName' | 'createdAt' | 'updatedAt' | 'namespace'>> {
  /**
   * What becomes of an item that dies without a dead queue: a letter, or nothing. Left out: 'letter' in a new queue,
   * unchanged in an update.
   */
  readonly onDeath?: OnDeath
}

export interface Queue extends QueueFacts<Date> {
  readonly leaseTimeout: string
  readonly expireTimeout: string
}

export type NewItemWithKey = ShapeOfItem<Time>
export type NewItem = Omit<NewItemWithKey, 'dedupeKey'>
export type ProduceRequest<Item extends NewItem = NewItem> = ShapeOfProduce<Item>

export interface ProduceReceipt {
  readonly partition: number
  /** One per item of the request, in its order. */
  readonly items: readonly { readonly outcome: 'queued' | 'scheduled' | 'existed'; readonly id: string }[]
}

export interface LeasedItem extends Leased<Date> {
  readonly id: string
}

export type LeasedBatch = Batch<LeasedItem>

export type RetryItem = GivenBack<Time>
export type RetryRequest = ForItems<RetryItem>

export interface StoredItem extends Stored<Date> {
  readonly id: string
}

export type Death = DeathRecord<Date, string>

export interface PeekedItem extends StoredItem {
  /** Null unless it died into this queue. */
  readonly death: Death | null
}

export type ImportItem = Imported<Time, Uint8Array | string>
export type ImportRequest = ForItems<ImportItem>
export type ImportOutcome = ImportOutcomeOf<StoredItem>

export interface PartitionStats extends PartitionDepth {
  readonly averageAge: string
  readonly averageLeasedAge: string
}

export type QueueStats = StatsOf<PartitionStats>
