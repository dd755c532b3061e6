/**
 * What callers give to the client and get from it. The same words as the library's, so that code moves
 * between the two; times are `Date`s and durations are Go duration text ("90s", "5m"), as on the wire.
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
   * What becomes of an item that dies while there is no dead queue: a letter, or nothing. Left out: 'letter' in a new queue,
   * as it was in an update.
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

/** How an item died. */
export type Death = DeathRecord<Date, string>

/** A stored item with what only our own endpoints tell. */
export interface PeekedItem extends StoredItem {
  /** null unless it was moved here by its death. */
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
