/**
 * What is asked of queues and answered, in the words that library, server and client share. They differ in what an instant is (`At`:
 * the library's `Instant`, the client's `Date`) and in what only the library tells (queue.ts).
 *
 * Requests carry durations as Go duration strings ("90s", "5m") because the order in which the contract validates them is part of the
 * contract; they are parsed in `validate.ts` and nowhere else.
 */
import Type from 'typebox'
import { INTEGER, oneOf, orNull, type Shape, TEXT, TIME } from '../api/shapes.ts'
import type { Instant } from '../core/clock.ts'

/** What becomes of an item that dies while its queue has no dead queue. */
export const ON_DEATH = ['letter', 'delete'] as const
export type OnDeath = (typeof ON_DEATH)[number]

/** A queue as it is now. */
export interface QueueFacts<At> {
  readonly queueName: string
  readonly createdAt: At
  readonly updatedAt: At
  readonly deadQueue: string
  readonly reference: string
  /** 0 means unlimited. */
  readonly maxAttempts: number
  readonly requestedPartitions: number
  readonly namespace: string
}

/** What the producer chose; stored, shown and sent back byte for byte. */
export interface ItemContent {
  readonly encoding: string
  readonly kind: string
  readonly reference: string
  readonly payload: Uint8Array
}

export interface NewItem<At = Instant> extends Partial<Omit<ItemContent, 'payload'>> {
  readonly payload?: Uint8Array | string
  /** Deliver not before this instant; absent, past or less than 100 ms ahead means at once. */
  readonly enqueueAt?: At
  /** A repeated key within the queue's dedupe window returns the first item's id and adds nothing. */
  readonly dedupeKey?: string
}

export interface ProduceRequest<Item = NewItem> {
  readonly queueName: string
  /** Left out: one minute. The empty string is an error, as on the wire. */
  readonly requestTimeout?: string
  readonly items: readonly Item[]
}

export interface LeaseRequest {
  readonly queueName: string
  /** Only one lease per client id and queue may wait at a time. */
  readonly clientId: string
  readonly batchSize: number
  /** How long to wait for an item. Left out: one minute. */
  readonly requestTimeout?: string
}

/** An item that was leased, but for its id. */
export interface Leased<At> extends ItemContent {
  /** Deliveries so far, this one included. */
  readonly attempts: number
  readonly leaseDeadline: At
}

export interface Batch<Item> {
  readonly queueName: string
  readonly partition: number
  readonly items: readonly Item[]
}

/** Where the items of a request lie. */
interface InPartition {
  readonly queueName: string
  /** Left out: the first. */
  readonly partition?: number
}

/** Of deletions, and of completions and extensions: all of them or none. */
export interface ItemIds extends InPartition {
  readonly ids: readonly string[]
}

/** What failed, as a consumer says it; what is empty or left out was not said. */
export interface GivenError {
  readonly errorClass?: string
  readonly errorMessage?: string
  readonly errorStack?: string
}

/** The error that was given shows on the letter when the item dies, now or later. All items of a request share 250 KiB on the wire. */
export interface GivenBack<At> extends GivenError {
  readonly id: string
  readonly retryAt?: At
  /** Dead now, whatever attempts are left: to the dead queue, or a letter without one. */
  readonly dead?: boolean
}

/** A request about items of one partition. */
export interface ForItems<Item> extends InPartition {
  readonly items: readonly Item[]
}

export interface ExtendRequest extends ItemIds {
  /** The new lease runs this long from now; left out: the queue's lease timeout. */
  readonly leaseTimeout?: string
}

export interface PeekRequest extends InPartition {
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
  /** The first name or id to list; blank means from the start. */
  readonly pivot?: string
  /** 0 or left out: 1000. */
  readonly limit?: number
}

export interface ListItemsRequest extends ListRequest, InPartition {}

/** An item as it lies in the store, but for its id. */
export interface Stored<At> extends ItemContent {
  /** The id it had where it died, or what an import gave; '' when there is none. */
  readonly sourceId: string
  readonly isLeased: boolean
  /** null is the zero time: no deadline. */
  readonly leaseDeadline: At | null
  readonly expireDeadline: At | null
  readonly createdAt: At
  readonly attempts: number
  /** Echo of an import; the queue's own value is the one that counts. */
  readonly maxAttempts: number
}

/** The short record of a move to the dead queue. */
export interface DeathRecord<At, Reason extends string> {
  readonly queueName: string
  readonly partition: number
  readonly reason: Reason
  readonly attempts: number
  readonly createdAt: At
  readonly diedAt: At
}

/** An item with a past: what is left out is as in a new one. */
export interface Imported<At, Payload> extends Partial<Omit<Stored<At>, 'payload' | 'createdAt'>> {
  readonly payload?: Payload
}

/** One per item of the request; one that `existed` had a `sourceId` that is already held. */
export type ImportOutcomeOf<Item> =
  | { readonly outcome: 'imported'; readonly item: Item }
  | { readonly outcome: 'existed' }

export interface PartitionDepth {
  readonly partition: number
  /** Queued items, leased ones included, scheduled ones not. */
  readonly total: number
  readonly totalLeased: number
  readonly scheduled: number
  /** Consecutive store failures; 0 is healthy. */
  readonly failures: number
}

export interface StatsOf<Partition extends PartitionDepth> {
  readonly queueName: string
  readonly produceWaiting: number
  readonly leaseWaiting: number
  readonly completeWaiting: number
  readonly inFlight: number
  readonly partitions: readonly Partition[]
}

/** A queue as `GET /api/queues` shows it. */
export const QUEUE_VIEW = Type.Object({
  name: TEXT,
  deadQueue: orNull(TEXT),
  onDeath: oneOf(ON_DEATH, {
    description: 'What becomes of an item that dies here while there is no dead queue',
  }),
  partitions: INTEGER,
  ready: INTEGER,
  leased: INTEGER,
  scheduled: INTEGER,
  held: Type.Integer({ description: 'Items that wait for a dead queue that does not exist' }),
  dead: Type.Integer({ description: 'Dead letters that lie in this queue' }),
  oldestAtUtc: orNull(TIME, { description: 'When the item at its head was created' }),
  letters: Type.Integer({ description: 'Pending letters that came from it' }),
  maxAttempts: Type.Integer({ description: '0 is unlimited' }),
  leaseTimeout: TEXT,
  deadTimeout: orNull(TEXT, { description: 'How long an item lives; null is for ever' }),
})
export type QueueView = Shape<typeof QUEUE_VIEW>
