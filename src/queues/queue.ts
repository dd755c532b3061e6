/**
 * The words of the queue module: what a queue is, what an item is, what callers ask and are told.
 * Requests carry durations as Go duration strings ("90s", "5m") because the order in which the contract
 * validates them is part of the contract; they are parsed in `validate.ts` and nowhere else.
 */
import type { Instant } from '../core/clock.ts'
import type { ErrorDescription } from '../core/thrown.ts'
import type { DeathReason, LetterId } from '../letters/letter.ts'

export type { DeathReason } from '../letters/letter.ts'

declare const itemIdBrand: unique symbol

/** An item's public id: a KSUID of 27 base62 characters. Opaque; it changes when the item goes to the tail. */
export type ItemId = string & { readonly [itemIdBrand]: true }

/** What callers give to create or update a queue. Empty strings and zero mean "not given". */
export interface QueueSettings {
  readonly queueName: string
  readonly leaseTimeout?: string
  readonly expireTimeout?: string
  readonly deadQueue?: string
  readonly reference?: string
  readonly maxAttempts?: number
  readonly requestedPartitions?: number
  readonly namespace?: string
  /** One of `ON_DEATH`; not given: 'letter' in a new queue, as it was in an update. */
  readonly onDeath?: string
}

/** What becomes of an item that dies while its queue has no dead queue. */
export const ON_DEATH = ['letter', 'delete'] as const
export type OnDeath = (typeof ON_DEATH)[number]

/** A queue as it is now. */
export interface QueueInfo {
  readonly queueName: string
  readonly createdAt: Instant
  readonly updatedAt: Instant
  readonly leaseTimeoutNs: bigint
  readonly expireTimeoutNs: bigint
  readonly deadQueue: string
  readonly reference: string
  /** 0 means unlimited. */
  readonly maxAttempts: number
  readonly requestedPartitions: number
  readonly namespace: string
  /** Counts only while there is no dead queue. Never on the wire of the queue API. */
  readonly onDeath: OnDeath
}

/** What the producer chose; stored, shown and sent back byte for byte. */
export interface ItemContent {
  readonly encoding: string
  readonly kind: string
  readonly reference: string
  readonly payload: Uint8Array
}

export interface NewItem {
  readonly encoding?: string
  readonly kind?: string
  readonly reference?: string
  readonly payload?: Uint8Array | string
  /** Deliver not before this instant; absent, past or less than 100 ms ahead means at once. */
  readonly enqueueAt?: Instant
  /** A repeated key within the queue's dedupe window returns the first item's id and adds nothing. */
  readonly dedupeKey?: string
}

export interface ProduceRequest {
  readonly queueName: string
  /** Left out: one minute. The empty string is an error, as on the wire. */
  readonly requestTimeout?: string
  readonly items: readonly NewItem[]
}

export type ProduceOutcome =
  | { readonly outcome: 'queued' | 'scheduled'; readonly id: ItemId }
  /** The dedupe key was known; `id` is what the first item got. */
  | { readonly outcome: 'existed'; readonly id: ItemId }

export interface ProduceReceipt {
  readonly partition: number
  /** One per item of the request, in its order. */
  readonly items: readonly ProduceOutcome[]
}

export interface LeaseRequest {
  readonly queueName: string
  readonly clientId: string
  readonly batchSize: number
  /** Left out: one minute. */
  readonly requestTimeout?: string
}

export interface LeasedItem extends ItemContent {
  readonly id: ItemId
  /** Deliveries so far, this one included. */
  readonly attempts: number
  readonly leaseDeadline: Instant
  /** The case under which its failures are filed, once there is one. Not on the wire. */
  readonly caseId?: LetterId
}

/** A worker's run over an item, recorded in history with what became of the item. */
export interface Run {
  readonly engine: string
  readonly operation: string
  readonly instanceId: string
  readonly correlationId: string
  /** Who ran it. */
  readonly actor: string
  readonly durationMs: number
  readonly input: Uint8Array | null
  readonly output: Uint8Array | null
}

export type FailedRun = Run & ErrorDescription

export interface LeasedBatch {
  readonly queueName: string
  readonly partition: number
  readonly items: readonly LeasedItem[]
}

export interface CompleteRequest {
  readonly queueName: string
  readonly partition?: number
  /** Left out: one minute. */
  readonly requestTimeout?: string
  readonly ids: readonly string[]
  /** The runs that completed the items, by item id; recorded in the same transaction. Not on the wire. */
  readonly runs?: ReadonlyMap<string, Run>
}

export interface RetryRequest {
  readonly queueName: string
  readonly partition?: number
  readonly items: readonly RetryItem[]
}

/** What failed, as a consumer says it; what is empty or left out was not said. */
export interface GivenError {
  readonly errorClass?: string
  readonly errorMessage?: string
  readonly errorStack?: string
}

/** The error that was given shows on the letter when the item dies, now or later. */
export interface RetryItem extends GivenError {
  readonly id: string
  readonly retryAt?: Instant
  /** Dead now, whatever attempts are left: to the dead queue, or a letter without one. */
  readonly dead?: boolean
  /**
   * The run that failed; recorded in the same transaction and filed in the item's case. An item that dies with one
   * becomes a letter also when its queue says `onDeath: 'delete'`. Not on the wire.
   */
  readonly run?: FailedRun
  /** It was not worked on: this delivery does not count as an attempt. Not on the wire. */
  readonly unspent?: boolean
}

export interface ExtendRequest {
  readonly queueName: string
  readonly partition?: number
  readonly ids: readonly string[]
  /** The new lease runs this long from now; left out: the queue's lease timeout. */
  readonly leaseTimeout?: string
}

export interface PeekRequest {
  readonly queueName: string
  readonly partition?: number
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

export interface ListItemsRequest {
  readonly queueName: string
  readonly partition?: number
  /** The first id to list; blank means from the start. */
  readonly pivot?: string
  /** 0 means 1000. */
  readonly limit?: number
}

/** An item as it lies in the store. */
export interface StoredItem extends ItemContent {
  readonly id: ItemId
  /** The id it had where it died, or what an import gave; '' when there is none. */
  readonly sourceId: string
  readonly isLeased: boolean
  /** null is the zero time: no deadline. */
  readonly leaseDeadline: Instant | null
  readonly expireDeadline: Instant | null
  readonly createdAt: Instant
  /** When a scheduled item comes due; null for queued items. Not on the wire. */
  readonly enqueueAt: Instant | null
  readonly attempts: number
  /** Echo of an import; the queue's own value is the one that counts. */
  readonly maxAttempts: number
  /** How it died, when it lies in a dead queue because it was moved there. Not on the Querator wire. */
  readonly death: Death | null
}

/** The short record of a move to the dead queue. */
export interface Death {
  readonly queueName: string
  readonly partition: number
  readonly reason: DeathReason
  readonly attempts: number
  readonly createdAt: Instant
  readonly diedAt: Instant
}

export interface ImportItem {
  readonly sourceId?: string
  readonly isLeased?: boolean
  readonly leaseDeadline?: Instant | null
  readonly expireDeadline?: Instant | null
  readonly attempts?: number
  readonly maxAttempts?: number
  readonly encoding?: string
  readonly kind?: string
  readonly reference?: string
  readonly payload?: Uint8Array
}

export interface ImportRequest {
  readonly queueName: string
  readonly partition?: number
  readonly items: readonly ImportItem[]
}

/** One per item of the request; a skipped one had a `sourceId` that is already held. */
export type ImportOutcome =
  | { readonly outcome: 'imported'; readonly item: StoredItem }
  | { readonly outcome: 'existed' }

export interface DeleteItemsRequest {
  readonly queueName: string
  readonly partition?: number
  readonly ids: readonly string[]
}

export interface PartitionStats {
  readonly partition: number
  /** Queued items, leased ones included, scheduled ones not. */
  readonly total: number
  readonly totalLeased: number
  readonly scheduled: number
  /** Consecutive store failures; 0 is healthy. */
  readonly failures: number
  /** Mean of now − created over queued items, in microseconds. */
  readonly averageAgeUs: bigint
  /** Mean of deadline − now over leased items, in microseconds. */
  readonly averageLeasedAgeUs: bigint
}

export interface QueueStats {
  readonly queueName: string
  readonly produceWaiting: number
  readonly leaseWaiting: number
  readonly completeWaiting: number
  readonly inFlight: number
  readonly partitions: readonly PartitionStats[]
}

export interface ListQueuesRequest {
  /** The first name to list; blank means from the start. */
  readonly pivot?: string
  /** 0 means 1000. */
  readonly limit?: number
  readonly namespace?: string
}

/**
 * Depths for dashboards, cheap at any size. `dead` counts dead letters lying in this queue. `oldestAt` is
 * when the item at the head of the queue was created, null when the queue is empty.
 */
export interface QueueDepth {
  readonly queueName: string
  readonly ready: number
  readonly leased: number
  readonly scheduled: number
  /** Items that should die and cannot, because the queue's dead queue does not exist. */
  readonly held: number
  readonly dead: number
  readonly oldestAt: Instant | null
}

/** A queue with its settings and how it stands, for overviews. */
export interface QueueOverview extends QueueInfo, QueueDepth {
  /** How many partitions it has. */
  readonly partitions: number
}

/** Everything that can be asked of queues. Failures are `BartlebyError`s with a code of the error table. */
export interface Queues {
  produce(request: ProduceRequest): Promise<ProduceReceipt>
  /** Long poll. Aborting `signal` drops the waiter at once; what was leased already stays leased. */
  lease(request: LeaseRequest, signal?: AbortSignal): Promise<LeasedBatch>
  complete(request: CompleteRequest): Promise<void>
  retry(request: RetryRequest): Promise<void>
  /** Lengthens leases you hold; all or nothing, with the checks of complete. Returns the new deadline. */
  extend(request: ExtendRequest): Promise<Instant>
  /** The next items that a lease would get, without leasing them. */
  peek(request: PeekRequest): Promise<readonly StoredItem[]>

  create(settings: QueueSettings): Promise<QueueInfo>
  update(settings: QueueSettings): Promise<QueueInfo>
  delete(request: { readonly queueName: string; readonly force?: boolean }): Promise<void>
  list(request?: ListQueuesRequest): Promise<readonly QueueInfo[]>
  info(queueName: string): Promise<QueueInfo>
  stats(queueName: string): Promise<QueueStats>
  /** All queues, of one moment; a fixed number of statements, however many there are. */
  depths(): Promise<readonly QueueDepth[]>
  /** The same of one page of queues, with their settings. */
  overview(request?: ListQueuesRequest): Promise<readonly QueueOverview[]>
  clear(request: ClearRequest): Promise<void>
  reload(queueName: string): Promise<void>

  listItems(request: ListItemsRequest): Promise<readonly StoredItem[]>
  listScheduled(request: ListItemsRequest): Promise<readonly StoredItem[]>
  importItems(request: ImportRequest): Promise<readonly ImportOutcome[]>
  deleteItems(request: DeleteItemsRequest): Promise<void>

  /** Test control: hold produce, lease, complete, retry and all lifecycle work of one queue. */
  pause(queueName: string, paused: boolean): Promise<void>
  /** Test control: runs everything that is due now, in every queue, and answers what became answerable. */
  settle(): Promise<void>
  /** Test control: when the leases that wait now run out of time. */
  waitDeadlines(): readonly Instant[]
}
