/**
 * What callers give to the client and get from it. The same words as the library's, so that code moves
 * between the two; times are `Date`s and durations are Go duration text ("90s", "5m"), as on the wire.
 */
import type { Time } from './times.ts'

export interface QueueSettings
  extends Pick<Queue, 'queueName'>,
    Partial<Omit<Queue, 'queueName' | 'createdAt' | 'updatedAt' | 'namespace'>> {
  /**
   * What becomes of an item that dies while there is no dead queue: a letter, or nothing. Left out: 'letter' in a new queue,
   * as it was in an update.
   */
  readonly onDeath?: 'letter' | 'delete'
}

/** A queue as it is now. */
export interface Queue {
  readonly queueName: string
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly leaseTimeout: string
  readonly expireTimeout: string
  readonly deadQueue: string
  readonly reference: string
  /** 0 means unlimited. */
  readonly maxAttempts: number
  readonly requestedPartitions: number
  readonly namespace: string
}

interface GivenContent extends Partial<Omit<ItemContent, 'payload'>> {
  readonly payload?: Uint8Array | string
}

export interface NewItem extends GivenContent {
  /** Deliver not before this time. */
  readonly enqueueAt?: Time
}

export interface NewItemWithKey extends NewItem {
  /** A repeated key within the queue's dedupe window returns the first item's id and adds nothing. */
  readonly dedupeKey?: string
}

export interface ProduceRequest<Item extends NewItem = NewItem> {
  readonly queueName: string
  readonly items: readonly Item[]
  /** Left out: one minute. */
  readonly requestTimeout?: string
}

export interface ProduceReceipt {
  readonly partition: number
  /** One per item of the request, in its order. */
  readonly items: readonly { readonly outcome: 'queued' | 'scheduled' | 'existed'; readonly id: string }[]
}

export interface LeaseRequest {
  readonly queueName: string
  /** Only one lease per client id and queue may wait at a time. */
  readonly clientId: string
  readonly batchSize: number
  /** How long to wait for an item. Left out: one minute. */
  readonly requestTimeout?: string
}

export interface ItemContent {
  readonly payload: Uint8Array
  readonly encoding: string
  readonly kind: string
  readonly reference: string
}

export interface LeasedItem extends ItemContent {
  readonly id: string
  /** Deliveries so far, this one included. */
  readonly attempts: number
  readonly leaseDeadline: Date
}

export interface LeasedBatch {
  readonly queueName: string
  readonly partition: number
  readonly items: readonly LeasedItem[]
}

interface Partition {
  readonly queueName: string
  /** Left out: the first. */
  readonly partition?: number
}

export interface ItemIds extends Partition {
  readonly ids: readonly string[]
}

export interface RetryItem {
  readonly id: string
  readonly retryAt?: Time
  /** Dead now, whatever attempts are left: to the dead queue, or a letter without one. */
  readonly dead?: boolean
  /** What failed. The letter shows it when the item dies, now or later. All items of a request share 250 KiB. */
  readonly errorClass?: string
  readonly errorMessage?: string
  readonly errorStack?: string
}

export interface RetryRequest extends Partition {
  readonly items: readonly RetryItem[]
}

export interface ExtendRequest extends ItemIds {
  /** The new lease runs this long from now; left out: the queue's lease timeout. */
  readonly leaseTimeout?: string
}

export interface PeekRequest extends Partition {
  /** 1 to 1000; left out: 10. */
  readonly limit?: number
}

export interface ClearRequest {
  readonly queueName: string
  /** Un-leased queued items; with `destructive` leased ones too. */
  readonly queue?: boolean
  readonly scheduled?: boolean
  readonly destructive?: boolean
}

export interface ListRequest {
  /** The first name to list; blank means from the start. */
  readonly pivot?: string
  /** Left out: 1000. */
  readonly limit?: number
}

export interface ListItemsRequest extends ListRequest, Partition {}

/** An item as it lies in the store. */
export interface StoredItem extends ItemContent {
  readonly id: string
  /** The id it had where it died, or what an import gave; '' when there is none. */
  readonly sourceId: string
  readonly isLeased: boolean
  readonly leaseDeadline: Date | null
  readonly expireDeadline: Date | null
  readonly createdAt: Date
  readonly attempts: number
  readonly maxAttempts: number
}

/** How an item died. */
export interface Death {
  readonly queueName: string
  readonly partition: number
  readonly reason: string
  readonly attempts: number
  readonly createdAt: Date
  readonly diedAt: Date
}

/** A stored item with what only our own endpoints tell. */
export interface PeekedItem extends StoredItem {
  /** null unless it was moved here by its death. */
  readonly death: Death | null
}

export interface ImportItem
  extends GivenContent,
    Partial<Pick<StoredItem, 'sourceId' | 'isLeased' | 'attempts' | 'maxAttempts'>> {
  readonly leaseDeadline?: Time
  readonly expireDeadline?: Time
}

export interface ImportRequest extends Partition {
  readonly items: readonly ImportItem[]
}

/** One per item of the request; `existed` means that its `sourceId` is already held. */
export type ImportOutcome =
  | { readonly outcome: 'imported'; readonly item: StoredItem }
  | { readonly outcome: 'existed' }

export interface PartitionStats {
  readonly partition: number
  /** Queued items, leased ones included, scheduled ones not. */
  readonly total: number
  readonly totalLeased: number
  readonly scheduled: number
  readonly failures: number
  readonly averageAge: string
  readonly averageLeasedAge: string
}

export interface QueueStats {
  readonly queueName: string
  readonly produceWaiting: number
  readonly leaseWaiting: number
  readonly completeWaiting: number
  readonly inFlight: number
  readonly partitions: readonly PartitionStats[]
}
