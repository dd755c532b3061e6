/**
 * The words of the queue module: what a queue is, what an item is, what callers ask and are told. What the client says in the same words is
 * in shapes.ts.
 */
import type { Instant } from '../core/clock.ts'
import type { ErrorDescription } from '../core/thrown.ts'
import type { DeathReason, LetterId } from '../letters/letter.ts'
import type {
  Batch,
  ClearRequest,
  DeathRecord,
  ExtendRequest,
  ForItems,
  GivenBack,
  Imported,
  ImportOutcomeOf,
  ItemIds,
  Leased,
  LeaseRequest,
  ListItemsRequest,
  ListRequest,
  OnDeath,
  PartitionDepth,
  PeekRequest,
  ProduceRequest,
  QueueFacts,
  StatsOf,
  Stored,
} from './shapes.ts'

export type { DeathReason } from '../letters/letter.ts'
export type {
  ClearRequest,
  ExtendRequest,
  GivenError,
  ItemContent,
  ItemIds as DeleteItemsRequest,
  LeaseRequest,
  ListItemsRequest,
  NewItem,
  OnDeath,
  PeekRequest,
  ProduceRequest,
} from './shapes.ts'

declare const itemIdBrand: unique symbol

/** An item's public id: a KSUID of 27 base62 characters. Opaque; it changes when the item goes to the tail. */
export type ItemId = string & { readonly [itemIdBrand]: true }

/** What callers give to create or update a queue. Empty strings and zero mean "not given". */
export interface QueueSettings
  extends Pick<QueueInfo, 'queueName'>,
    Partial<
      Pick<QueueInfo, 'deadQueue' | 'reference' | 'maxAttempts' | 'requestedPartitions' | 'namespace'>
    > {
  readonly leaseTimeout?: string
  readonly expireTimeout?: string
  /** One of `ON_DEATH`; not given: 'letter' in a new queue, as it was in an update. */
  readonly onDeath?: string
}

/** A queue as it is now. */
export interface QueueInfo extends QueueFacts<Instant> {
  readonly leaseTimeoutNs: bigint
  readonly expireTimeoutNs: bigint
  /** Counts only while there is no dead queue. Never on the wire of the queue API. */
  readonly onDeath: OnDeath
}

/** When the dedupe key was known, `id` is what the first item got. */
export interface ProduceOutcome {
  readonly outcome: 'queued' | 'scheduled' | 'existed'
  readonly id: ItemId
}

export interface ProduceReceipt {
  readonly partition: number
  /** One per item of the request, in its order. */
  readonly items: readonly ProduceOutcome[]
}

export interface LeasedItem extends Leased<Instant> {
  readonly id: ItemId
  /** The case under which its failures are filed, once there is one. Not on the wire. */
  readonly caseId?: LetterId
}

export type LeasedBatch = Batch<LeasedItem>

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

export interface CompleteRequest extends ItemIds {
  /** Left out: one minute. */
  readonly requestTimeout?: string
  /** The runs that completed the items, by item id; recorded in the same transaction. Not on the wire. */
  readonly runs?: ReadonlyMap<string, Run>
}

export interface RetryItem extends GivenBack<Instant> {
  /**
   * The run that failed; recorded in the same transaction and filed in the item's case. An item that dies with one
   * becomes a letter also when its queue says `onDeath: 'delete'`. Not on the wire.
   */
  readonly run?: FailedRun
  /** It was not worked on: this delivery does not count as an attempt. Not on the wire. */
  readonly unspent?: boolean
}

export type RetryRequest = ForItems<RetryItem>

/** An item as it lies in the store. */
export interface StoredItem extends Stored<Instant> {
  readonly id: ItemId
  /** When a scheduled item comes due; null for queued items. Not on the wire. */
  readonly enqueueAt: Instant | null
  /** How it died, when it lies in a dead queue because it was moved there. Not on the Querator wire. */
  readonly death: Death | null
}

export type Death = DeathRecord<Instant, DeathReason>

export type ImportItem = Imported<Instant, Uint8Array>
export type ImportRequest = ForItems<ImportItem>
export type ImportOutcome = ImportOutcomeOf<StoredItem>

export interface PartitionStats extends PartitionDepth {
  /** Mean of now − created over queued items, in microseconds. */
  readonly averageAgeUs: bigint
  /** Mean of deadline − now over leased items, in microseconds. */
  readonly averageLeasedAgeUs: bigint
}

export type QueueStats = StatsOf<PartitionStats>

export interface ListQueuesRequest extends ListRequest {
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
  deleteItems(request: ItemIds): Promise<void>

  /** Test control: hold produce, lease, complete, retry and all lifecycle work of one queue. */
  pause(queueName: string, paused: boolean): Promise<void>
  /** Test control: runs everything that is due now, in every queue, and answers what became answerable. */
  settle(): Promise<void>
  /** Test control: when the leases that wait now run out of time. */
  waitDeadlines(): readonly Instant[]
}
