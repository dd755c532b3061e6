/** Messages: as an application writes them, as a transport gets them, and how a claim on one ends. */
import type { Instant } from '../../../core/clock.ts'

export interface NewMessage {
  readonly tenantId: string
  readonly eventType: string
  /** Bytes and texts are kept as they are; anything else as its JSON. */
  readonly payload: unknown
  /** The same for what is logically the same message; a random one when left out or all zeros. See `createKey`. */
  readonly key?: string
  /** Messages of one tenant with the same ordering key are delivered one after the other. */
  readonly orderingKey?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly correlationId?: string
}

export interface Added {
  readonly id: string
  readonly idempotencyKey: string
  /** The tenant had a message with this key. That one stays, and nothing was added. */
  readonly alreadyExisted: boolean
  /** The message that was there has another payload. */
  readonly conflict?: true
}

/** A message as a transport gets it. */
export interface OutboxMessage {
  readonly id: string
  readonly tenantId: string
  readonly eventType: string
  /** Byte for byte what was written. */
  readonly payload: Uint8Array
  readonly key: string
  readonly createdAt: Instant
  /** How often delivering it has failed. */
  readonly retryCount: number
  readonly orderingKey: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly correlationId: string | null
}

export interface ClaimedMessage extends OutboxMessage {
  /** Claims since it was last settled, this one included. */
  readonly claims: number
  /** Marked processed by another program, in the way of the table's first owners. */
  readonly alreadyProcessed: boolean
}

export type ClaimEnd =
  | { readonly kind: 'processed' }
  | { readonly kind: 'failed'; readonly error: string; readonly nextAttemptAt: Instant }
  /** `failures`: 1 when the last delivery failed, 0 when it never ended. */
  | { readonly kind: 'dead'; readonly error: string; readonly failures: 0 | 1 }
  /** Given back undelivered; `parked`: an earlier message of its line is not done. */
  | { readonly kind: 'released'; readonly parked: boolean }

export type Settlement = ClaimEnd & { readonly id: string }

export const OUTBOX_STATUSES = ['pending', 'failed', 'processed', 'dead'] as const
export type OutboxStatus = (typeof OUTBOX_STATUSES)[number]
