/**
 * Requests and answers of queues, in words that library, server and client share. They differ in the type of an instant (`At`) and in what
 * only the library tells (queue.ts). Durations are Go duration strings ("90s", "5m"): the order in which they are validated is part of the
 * contract, so `validate.ts` alone parses them.
 */
import Type from 'typebox'
import { INTEGER, oneOf, orNull, type Shape, TEXT, TIME } from '../api/shapes.ts'
import type { Instant } from '../core/clock.ts'

/** What becomes of an item that dies while its queue has no dead queue. */
export const ON_DEATH = ['letter', 'delete'] as const
export type OnDeath = (typeof ON_DEATH)[number]

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

/** The producer's own; stored, shown and sent back byte for byte. */
export interface ItemContent {
  readonly encoding: string
  readonly kind: string
  readonly reference: string
  readonly payload: Uint8Array
}

export interface NewItem<At = Instant> extends Partial<Omit<ItemContent, 'payload'>> {
  readonly payload?: Uint8Array | string
  /** Earliest delivery; absent, past or less than 100 ms ahead means at once. */
  readonly enqueueAt?: At
  /** A repeated key within the dedupe window adds nothing and returns the first item's id. */
  readonly dedupeKey?: string
}

export interface ProduceRequest<Item = NewItem> {
  readonly queueName: string
  /** Default: one minute. The empty string is an error, as on the wire. */
  readonly requestTimeout?: string
  readonly items: readonly Item[]
}

export interface LeaseRequest {
  readonly queueName: string
  /** One waiting lease per client id and queue. */
  readonly clientId: string
  readonly batchSize: number
  /** How long to wait for an item. Default: one minute. */
  readonly requestTimeout?: string
}

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

interface InPartition {
  readonly queueName: string
  /** Default: the first. */
  readonly partition?: number
}

/** All or none, except for deletions. */
export interface ItemIds extends InPartition {
  readonly ids: readonly string[]
}

/** An error given by a consumer; empty or absent means not given. */
export interface GivenError {
  readonly errorClass?: string
  readonly errorMessage?: string
  readonly errorStack?: string
}

/** The error shows on the letter when the item dies, now or later. Items of one request share 250 KiB on the wire. */
export interface GivenBack<At> extends GivenError {
  readonly id: string
  readonly retryAt?: At
  /** Dead now, whatever attempts are left. */
  readonly dead?: boolean
}

export interface ForItems<Item> extends InPartition {
  readonly items: readonly Item[]
}

export interface ExtendRequest extends ItemIds {
  /** Length of the new lease from now; default: the queue's lease timeout. */
  readonly leaseTimeout?: string
}

export interface PeekRequest extends InPartition {
  /** 1 to 1000; default 10. */
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
  /** First name or id to list; blank means from the start. */
  readonly pivot?: string
  /** Default, and for 0: 1000. */
  readonly limit?: number
}

export interface ListItemsRequest extends ListRequest, InPartition {}

export interface Stored<At> extends ItemContent {
  /** The id it had where it died, or that of an import; '' without one. */
  readonly sourceId: string
  readonly isLeased: boolean
  /** null is the zero time: no deadline. */
  readonly leaseDeadline: At | null
  readonly expireDeadline: At | null
  readonly createdAt: At
  readonly attempts: number
  /** Echo of an import; only the queue's own value counts. */
  readonly maxAttempts: number
}

/** The record of a move to the dead queue. */
export interface DeathRecord<At, Reason extends string> {
  readonly queueName: string
  readonly partition: number
  readonly reason: Reason
  readonly attempts: number
  readonly createdAt: At
  readonly diedAt: At
}

/** An item with a past; absent fields are as in a new one. */
export interface Imported<At, Payload> extends Partial<Omit<Stored<At>, 'payload' | 'createdAt'>> {
  readonly payload?: Payload
}

/** One per item of the request; `existed` means that its `sourceId` is already held. */
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
