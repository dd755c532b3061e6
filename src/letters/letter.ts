/**
 * The words of letters: what a letter is, what it becomes, where it comes from and goes back to.
 *
 *   capture ──► Pending ──► Resolved   retry (its item is on the way), discard, complete (from its dead queue)
 *                 ▲  │ └──► Expired    expire
 *                 │  └──────────────   every arrow is one transaction: letter, counts, one history row
 *                 ├── reopen           the item of its retry died again, or a new failure of it was reported
 *                 └── restore          from Resolved or Expired, while it is retained
 *
 * A Resolved letter whose item completes is *confirmed*; a Resolved or Expired one is removed when its time is over.
 */

import type { Within } from '../api/shapes.ts'
import type { Instant } from '../core/clock.ts'
import type { CaseFields } from './lists/detail.ts'
import type { ItemHeader, LetterAttempt, LetterItem } from './shapes.ts'
import type { OfficeWork } from './work.ts'

export { type DeathReason, ITEM_HEADERS, type ItemHeader, type LetterStatus, STATUSES } from './shapes.ts'

declare const letterIdBrand: unique symbol

/** Items that may become or reopen a letter carry its number as their case. */
export type LetterId = bigint & { readonly [letterIdBrand]: true }

export const letterId = (value: bigint | number | string): LetterId => BigInt(value) as LetterId

/** Stored statuses; the last three exist only as counts. `unconfirmed` letters are counted as Resolved too: sent back, not heard of. */
export const STATUS = {
  Pending: 0,
  Resolved: 1,
  Expired: 2,
  removed: 3,
  captured: 4,
  unconfirmed: 5,
} as const

/** The engine of acts of the office that concern no single engine, such as retention. It has no letters. */
export const OFFICE = 'office'

/** Acts on letters: the operations of their history rows. */
export const ACTS = [
  'capture',
  'retry',
  'discard',
  'complete',
  'expire',
  'restore',
  'reopen',
  'confirm',
  'remove',
] as const
export type Act = (typeof ACTS)[number]

/** Acts on redrives; history calls them `redrive.start` and so on. */
export const REDRIVE_ACTS = ['start', 'pause', 'resume', 'rate', 'cancel', 'go-on', 'stop', 'finish'] as const
export type RedriveAct = (typeof REDRIVE_ACTS)[number]

/** One failure in the case file, numbered over the letter's life. */
export type Failure = Within<LetterAttempt>

/** A letter as lists show it, without its large columns. */
export interface LetterSummary extends Within<Omit<LetterItem, 'resolutionNotes' | 'resolution'>> {
  readonly id: LetterId
  readonly resolution: Act | null
  readonly notes: string | null
}

/** Sent back and not heard of yet. */
export const isUnconfirmed = (letter: {
  readonly resolution: Act | null
  readonly confirmedAt: unknown
}): boolean => letter.resolution === 'retry' && letter.confirmedAt === null

/** Byte for byte as the item was. */
export interface LetterContent {
  readonly encoding: string
  readonly kind: string
  readonly reference: string
  /** Bytes beside the payload, as the source gave them. */
  readonly headers: Uint8Array | null
  readonly payload: Uint8Array
  /** Sent by a retry instead of the payload; null unless an operator edited it. */
  readonly editedPayload: Uint8Array | null
  readonly editedHeaders: HeaderEdit
}

export interface Letter extends LetterSummary, LetterContent, CaseFields {
  readonly drawer: number
  readonly originalPartition: number | null
  /** null: in no dead queue. */
  readonly position: DeadQueuePosition | null
}

export interface DeadQueuePosition {
  readonly part: number
  readonly shelf: number
  readonly serial: number
  readonly leased: boolean
  readonly leaseDeadline: Instant | null
  readonly laidAt: Instant
}

/** Edited headers; an empty text empties one. */
export type HeaderEdit = Readonly<Partial<Record<ItemHeader, string>>>

export interface Edit {
  /** null: unchanged. */
  readonly payload: Uint8Array | null
  /** Only for letters that go back to queues. */
  readonly headers?: HeaderEdit
}

export interface Outgoing {
  readonly letterId: LetterId
  readonly queue: string
  readonly encoding: string
  readonly kind: string
  readonly reference: string
  readonly payload: Uint8Array
  readonly correlationId: string
  /** One per letter and version: a receiver drops the second. */
  readonly idempotencyKey: string
}

export interface SendReceipt {
  readonly messageId: string
  readonly queue: string
}

export interface Sending {
  readonly notes: string | null
  readonly actor: string
  /** Left out: sent by the operator alone. */
  readonly redrive?: RedriveRef
  readonly settled?: Settled
}

export interface Retry extends Sending {
  /** null: sent as it is. */
  readonly edit: Edit | null
}

/** Runs in the transaction that resolves a letter which left over a network. */
export type Settled = (work: OfficeWork, receipt: SendReceipt) => Promise<void>

/** A redrive as letters and their history name it. */
export interface RedriveRef {
  readonly number: number
  readonly id: string
  /** Version of the recipe; null without one. */
  readonly recipe: string | null
}

export const sentBy = (redrive: RedriveRef | undefined) =>
  redrive === undefined
    ? {}
    : { redrive: redrive.id, ...(redrive.recipe === null ? {} : { recipe: redrive.recipe }) }

export const RETRIED = 'Retried'

/** Enough of a letter to take it out of its dead queue or put it back. */
export interface InDeadQueue {
  readonly id: LetterId
  readonly deadQueue: string | null
  readonly position: DeadQueuePosition | null
}
