/** The words of the queue module. Those that the client shares are in shapes.ts. */
import type { Instant } from '../core/clock.ts'
import type { ErrorDescription } from '../core/thrown.ts'
import type { DeathReason, LetterId } from '../letters/letter.ts'
import type {
  Batch,
  DeathRecord,
  ForItems,
  GivenBack,
  Imported,
  ImportOutcomeOf,
  ItemIds,
  Leased,
  ListRequest,
  OnDeath,
  PartitionDepth,
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

/** A KSUID of 27 base62 characters. Opaque; it changes when the item goes to the tail. */
export type ItemId = string & { readonly [itemIdBrand]: true }

/** Settings for create and update. Empty strings and zero mean "not given". */
export interface QueueSettings
  extends Pick<QueueInfo, 'queueName'>,
    Partial<
      Pick<QueueInfo, 'deadQueue' | 'reference' | 'maxAttempts' | 'requestedPartitions' | 'namespace'>
    > {
  readonly leaseTimeout?: string
  readonly expireTimeout?: string
  /** One of `ON_DEATH`; not given: 'letter' in a new queue, unchanged in an update. */
  readonly onDeath?: string
}

export interface QueueInfo extends QueueFacts<Instant> {
  readonly leaseTimeoutNs: bigint
  readonly expireTimeoutNs: bigint
  /** Applies only while there is no dead queue. Never on the wire of the queue API. */
  readonly onDeath: OnDeath
}

/** For a known dedupe key, `id` is that of the first item. */
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
  /** The case that its failures are filed under. Not on the wire. */
  readonly caseId?: LetterId
}

export type LeasedBatch = Batch<LeasedItem>

/** A worker's run over an item, recorded in history. */
export interface Run {
  readonly engine: string
  readonly operation: string
  readonly instanceId: string
  readonly correlationId: string
  readonly actor: string
  readonly durationMs: number
  readonly input: Uint8Array | null
  readonly output: Uint8Array | null
}

export type FailedRun = Run & ErrorDescription

export interface CompleteRequest extends ItemIds {
  /** Left out: one minute. */
  readonly requestTimeout?: string
  /** The runs that completed the items, by id, recorded in the same transaction. Not on the wire. */
  readonly runs?: ReadonlyMap<string, Run>
}

export interface RetryItem extends GivenBack<Instant> {
  /** The failed run, recorded in the same transaction. With one, a death makes a letter even under `onDeath: 'delete'`. Not on the wire. */
  readonly run?: FailedRun
  /** Nobody worked on it: the delivery does not count as an attempt. Not on the wire. */
  readonly unspent?: boolean
}

export type RetryRequest = ForItems<RetryItem>

export interface StoredItem extends Stored<Instant> {
  readonly id: ItemId
  /** When a scheduled item comes due. Not on the wire. */
  readonly enqueueAt: Instant | null
  /** How an item of a dead queue died. Not on the Querator wire. */
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

/** Depths for dashboards, cheap at any size. */
export interface QueueDepth {
  readonly queueName: string
  readonly ready: number
  readonly leased: number
  readonly scheduled: number
  /** Items that cannot die because their dead queue does not exist. */
  readonly held: number
  readonly dead: number
  /** When the item at the head was created; null when the queue is empty. */
  readonly oldestAt: Instant | null
}

export interface QueueOverview extends QueueInfo, QueueDepth {
  readonly partitions: number
}
