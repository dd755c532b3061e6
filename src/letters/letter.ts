/**
 * The words of the letters module: what a letter is, what it can become, where it comes from and goes back to.
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

/** A letter's number. Items that may become or reopen a letter carry it as their case. */
export type LetterId = bigint & { readonly [letterIdBrand]: true }

/** Marks a number from the store as a letter's. */
export const letterId = (value: bigint | number | string): LetterId => BigInt(value) as LetterId

/**
 * How statuses are stored; the last three exist only as counts. `unconfirmed` are letters that a retry resolved and of whose item
 * nothing was heard yet: they are counted as Resolved too.
 */
export const STATUS = {
  Pending: 0,
  Resolved: 1,
  Expired: 2,
  removed: 3,
  captured: 4,
  unconfirmed: 5,
} as const

/** The engine of what the office does itself and that concerns no single engine, such as retention. It has no letters. */
export const OFFICE = 'office'

/** The instance of messages whose worker names none: no key, they have nothing in common. */
export const UNNAMED_INSTANCE = 'publisher'

/** What is done to letters; the operation of the history row that records it. */
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

/** What is done to redrives, acts on many letters; history calls it `redrive.start`. */
export const REDRIVE_ACTS = ['start', 'pause', 'resume', 'rate', 'cancel', 'go-on', 'stop', 'finish'] as const
export type RedriveAct = (typeof REDRIVE_ACTS)[number]

/** One failure, as the case file keeps it; its number is that of the attempt over the letter's life. */
export type Failure = Within<LetterAttempt>

/** A letter as lists show it: everything but what is large. */
export interface LetterSummary extends Within<Omit<LetterItem, 'resolutionNotes' | 'resolution'>> {
  readonly id: LetterId
  readonly resolution: Act | null
  readonly notes: string | null
}

/** Whether it was sent back and nothing was heard of it yet: counted as `STATUS.unconfirmed`. */
export const isUnconfirmed = (letter: {
  readonly resolution: Act | null
  readonly confirmedAt: unknown
}): boolean => letter.resolution === 'retry' && letter.confirmedAt === null

/** The content of a letter, byte for byte as its item was. */
export interface LetterContent {
  readonly encoding: string
  readonly kind: string
  readonly reference: string
  /** What came with the payload, as the source gave it; null when nothing did. */
  readonly headers: Uint8Array | null
  readonly payload: Uint8Array
  /** What an operator made of the payload; null when nobody did. A retry sends this one. */
  readonly editedPayload: Uint8Array | null
  /** The same of what came beside it. */
  readonly editedHeaders: HeaderEdit
}

/** A letter with its case file. */
export interface Letter extends LetterSummary, LetterContent, CaseFields {
  /** The number of the drawer it lies in. */
  readonly drawer: number
  readonly originalPartition: number | null
  /** Its place in a dead queue; null when it lies in none. */
  readonly place: Place | null
}

/** Where a letter lies in a dead queue. */
export interface Place {
  readonly part: number
  readonly shelf: number
  readonly serial: number
  readonly leased: boolean
  readonly leaseDeadline: Instant | null
  readonly laidAt: Instant
}

/** Headers that somebody changed; an empty text empties one. */
export type HeaderEdit = Readonly<Partial<Record<ItemHeader, string>>>

/** What an operator changes before a letter is sent back. */
export interface Edit {
  /** null: it stays as it is. */
  readonly payload: Uint8Array | null
  /** Only letters that go back to queues have such headers. */
  readonly headers?: HeaderEdit
}

/** What would be sent, or is sent, back to the letter's source. */
export interface Outgoing {
  readonly letterId: LetterId
  readonly queue: string
  readonly encoding: string
  readonly kind: string
  readonly reference: string
  readonly payload: Uint8Array
  readonly correlationId: string
  /** The same for the same letter and the same version of it: a receiver that saw it drops the second. */
  readonly idempotencyKey: string
}

export interface SendReceipt {
  readonly messageId: string
  readonly queue: string
}

/** For whom letters go back, and why. */
export interface Sending {
  readonly notes: string | null
  readonly actor: string
  /** Left out: nobody's but the operator's own. */
  readonly redrive?: RedriveRef
  /** Runs in the transaction by which a letter that left over a network is Resolved. */
  readonly settled?: Settled
}

/** What an operator asks for when a letter shall go back. */
export interface Retry extends Sending {
  /** null: it is sent as it is. */
  readonly edit: Edit | null
}

/** What is written together with the end of a retry. */
export type Settled = (work: OfficeWork, receipt: SendReceipt) => Promise<void>

/** The redrive that sends a letter, as the letter and its history know it. */
export interface RedriveRef {
  readonly number: number
  readonly id: string
  /** The version of the recipe that it repairs letters by; null without one. */
  readonly recipe: string | null
}

/** How the history of a letter names the redrive that sent it. */
export const sentBy = (redrive: RedriveRef | undefined) =>
  redrive === undefined
    ? {}
    : { redrive: redrive.id, ...(redrive.recipe === null ? {} : { recipe: redrive.recipe }) }

/** The notes of a retry that was given none. */
export const RETRIED = 'Retried'

/** What a source needs to know to take a letter out of its dead queue or to put it back. */
export interface Placed {
  readonly id: LetterId
  readonly deadQueue: string | null
  readonly place: Place | null
}
