/** Letters on the wire: the unified table's fields under its names, then the office's own. */
import Type from 'typebox'
import {
  type Asked,
  BOOLEAN,
  DATE,
  ENCODING,
  ENCODING_OR_NULL,
  ERROR,
  either,
  FILED_ENGINE,
  INTEGER,
  INTEGER_OR_NULL,
  oneOf,
  orNull,
  type Shape,
  SOUGHT_ENGINE,
  TEXT,
  TEXT_ENCODINGS,
  TEXT_OR_NULL,
  TIME,
  TIME_OR_NULL,
  textUpTo,
} from '../api/shapes.ts'
import { OPERATION, OPERATION_TEXTS } from '../history/shapes.ts'

export const STATUSES = ['Pending', 'Resolved', 'Expired'] as const
export type LetterStatus = (typeof STATUSES)[number]
export const LETTER_STATUS = oneOf(STATUSES)

/** Out of attempts, out of time, rejected by a consumer, or failed for good in its worker. */
export const REASONS = ['attempts', 'expired', 'rejected', 'failed'] as const
export type DeathReason = (typeof REASONS)[number]

/** Of a letter that was sent back: its item was completed, or not heard of yet. */
export const RETRY_OUTCOMES = ['confirmed', 'unconfirmed'] as const
export type RetryOutcome = (typeof RETRY_OUTCOMES)[number]

/** Filled by `kinds.ts`: schemas are made before sources are declared. */
export const SOURCE_NAMES: string[] = []
export const SOURCE = oneOf(SOURCE_NAMES)

/** Carried by a queue item beside its payload. */
export const ITEM_HEADERS = ['encoding', 'kind', 'reference'] as const
export type ItemHeader = (typeof ITEM_HEADERS)[number]

/** More attempts than anything is ever given. */
export const MAX_ATTEMPTS = 1_000_000_000

/** Which letters; all given must hold. */
export interface LetterQuery extends Asked<typeof FILTER_QUERY> {}
export const FILTER_QUERY = {
  engine: SOUGHT_ENGINE,
  status: LETTER_STATUS,
  instanceId: TEXT,
  /** Last failure at or after this time. */
  fromDate: DATE,
  /** Last failure before this time. */
  toDate: DATE,
  source: SOURCE,
  originalQueue: TEXT,
  signature: TEXT,
  correlationId: TEXT,
  /** It was tried so often, at least. */
  minAttempts: Type.Integer({
    minimum: 1,
    maximum: MAX_ATTEMPTS,
    description: 'It was tried so often, at least',
  }),
  /** It was sent back, and its item was completed, or nothing was heard of it yet. */
  outcome: oneOf(RETRY_OUTCOMES, {
    description: 'It was sent back, and its item was completed, or nothing was heard of it yet',
  }),
  /** Text in the error, the reference, the headers or the payload. */
  q: Type.String({ description: 'Text in the error, the reference, the headers or the payload' }),
}

export interface LetterTotal extends Shape<typeof TOTAL> {}
export const TOTAL = Type.Object({
  total: INTEGER,
  /** False when there may be more: then `total` is as far as they were counted. */
  exact: Type.Boolean({ description: 'False when there may be more' }),
})

/** Names one letter. Every letter of a list is one. */
export interface LetterKey extends Shape<typeof KEY> {}
export const KEY = Type.Object({ engine: TEXT, rowKey: TEXT })

/** A letter as lists show it: without its payload. */
export interface LetterItem extends Shape<typeof LETTER> {}
export const LETTER = Type.Object({
  ...KEY.properties,
  instanceId: TEXT,
  /** null when it came from no queue. */
  originalQueue: TEXT_OR_NULL,
  errorMessage: TEXT,
  dequeueCount: INTEGER,
  status: LETTER_STATUS,
  firstFailureAtUtc: TIME,
  lastFailureAtUtc: TIME,
  correlationId: TEXT,
  resolutionNotes: TEXT_OR_NULL,
  resolvedAtUtc: TIME_OR_NULL,
  resolvedBy: TEXT_OR_NULL,
  /** What ended it: `retry`, `discard`, `complete` (from its dead queue), `expire`; null while it is pending. */
  resolution: TEXT_OR_NULL,
  /** When the item of its retry was completed. */
  confirmedAtUtc: TIME_OR_NULL,
  source: SOURCE,
  sourceId: TEXT,
  /** The group of its error. */
  signature: TEXT,
  /** Why it died. */
  reason: oneOf(REASONS),
  errorClass: TEXT,
  /** The dead queue it lies in or belongs to. */
  deadQueue: TEXT_OR_NULL,
})

/** One failure of the case file. */
export interface LetterAttempt extends Shape<typeof ATTEMPT> {}
export const ATTEMPT = Type.Object({
  number: INTEGER,
  failedAtUtc: TIME,
  failedBy: TEXT_OR_NULL,
  errorClass: TEXT,
  errorMessage: TEXT,
  errorStack: TEXT_OR_NULL,
})

/** An event in a letter's life. */
export interface LetterEvent extends Shape<typeof EVENT> {}
export const EVENT = Type.Object({
  ...OPERATION,
  ...OPERATION_TEXTS,
  /** Which transition of the letter it records; null when it changed nothing. */
  letterVersion: INTEGER_OR_NULL,
})

/** A letter with its case file. `bytesOf` makes bytes of its texts. */
export interface LetterDetail extends Shape<typeof LETTER_DETAIL> {}
export const LETTER_DETAIL = Type.Object({
  ...LETTER.properties,
  version: INTEGER,
  originalPartition: INTEGER_OR_NULL,
  itemCreatedAtUtc: TIME_OR_NULL,
  /** Of a letter that is Expired. */
  expiredAtUtc: TIME_OR_NULL,
  /** So long it is kept, at least, and can be restored; null while it is pending. */
  restorableUntilUtc: orNull(TIME, {
    description: 'So long it is kept, at least, and can be restored; null while it is pending',
  }),
  originalMessage: TEXT,
  originalMessageEncoding: ENCODING,
  /** Lower-case hex, of the bytes. */
  originalMessageSha256: TEXT,
  /** What an operator made of the message; a retry sends this one. */
  editedMessage: TEXT_OR_NULL,
  editedMessageEncoding: ENCODING_OR_NULL,
  encoding: TEXT,
  kind: TEXT,
  reference: TEXT,
  headers: Type.Unknown({
    description: 'What came with the message: an object when it is JSON, else a text',
  }),
  headersEncoding: orNull(oneOf([...TEXT_ENCODINGS, 'json'])),
  errorStack: TEXT_OR_NULL,
  failedBy: TEXT_OR_NULL,
  /** A consumer of its dead queue holds it. */
  leased: BOOLEAN,
  leaseDeadlineUtc: TIME_OR_NULL,
  /** The item that the latest retry made, and its queue. */
  sentAs: TEXT_OR_NULL,
  sentTo: TEXT_OR_NULL,
  /** What its source has to say of it now, a sentence each: what is under way, or not done yet. */
  remarks: Type.Array(TEXT, {
    description: 'What its source has to say of it now, a sentence each: what is under way, or not done yet',
  }),
  attempts: Type.Array(ATTEMPT),
  history: Type.Array(EVENT),
})

export interface Report extends Shape<typeof REPORT> {}
export const REPORT = Type.Object({
  engine: FILED_ENGINE,
  // Part of the row key: Azure allows 1,024 characters, and encoding may triple it.
  /** Left out: `publisher`. */
  instanceId: Type.Optional(textUpTo(256, { default: 'publisher' })),
  /** Left out: the queue of the engine. */
  originalQueue: Type.Optional(textUpTo(512, { description: "Left out: the engine's queue, if it has one" })),
  originalMessage: TEXT,
  originalMessageEncoding: Type.Optional(oneOf(TEXT_ENCODINGS, { default: 'utf8' })),
  errorMessage: TEXT,
  errorClass: Type.Optional(TEXT),
  errorStack: Type.Optional(TEXT),
  /** Default: 1. */
  dequeueCount: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647, default: 1 })),
  firstFailureAtUtc: Type.Optional(TIME),
  /**
   * Default: when the office receives it. With the error it tells a new failure from a repetition of an earlier report; left out,
   * `dequeueCount` does.
   */
  lastFailureAtUtc: Type.Optional(
    Type.String({
      format: 'date-time',
      description:
        'Left out: the time of receipt. A report with the same sourceId, error and lastFailureAtUtc (left out: dequeueCount) as one before is a repetition of it',
    }),
  ),
  correlationId: Type.Optional(textUpTo(256)),
  /** Yours for this message: it has one letter, however often it fails. */
  sourceId: textUpTo(512),
  headers: Type.Optional(Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: TEXT })),
})

export const MOST_REPORTS = 1_000

export const REPORTS = Type.Object({
  letters: Type.Array(REPORT, { minItems: 1, maxItems: MOST_REPORTS }),
})

const FILED = Type.Object({ ...KEY.properties, sourceId: TEXT, status: LETTER_STATUS })

/** `known`: its source id had a letter. A repetition changed nothing, a new failure is on top of it. */
const OUTCOME = either(
  Type.Object({ outcome: oneOf(['created', 'known']), letter: FILED }),
  Type.Object({ outcome: Type.Literal('refused'), error: ERROR }),
)
export type CaptureOutcome = Shape<typeof OUTCOME>

export interface CapturedLetters extends Shape<typeof CAPTURED> {}
export const CAPTURED = Type.Object({
  created: INTEGER,
  known: INTEGER,
  refused: INTEGER,
  /** One for each failure, in their order. */
  results: Type.Array(OUTCOME),
})

/** Many programs send null for none. */
const NOTES = Type.Optional(orNull(Type.String({ maxLength: 4_000 })))

export const CHANGE = Type.Object({ status: LETTER_STATUS, resolutionNotes: NOTES })

export const RETRY = Type.Object({
  payload: Type.Optional(TEXT),
  payloadEncoding: Type.Optional(oneOf(TEXT_ENCODINGS, { default: 'utf8' })),
  notes: NOTES,
})

export interface RetryReceipt extends Shape<typeof RECEIPT> {}
export const RECEIPT = Type.Object({ messageId: TEXT, queue: TEXT })

export interface RetryPreview extends Shape<typeof PREVIEW> {}
export const PREVIEW = Type.Object({
  dryRun: Type.Unsafe<true>({ type: 'boolean', const: true }),
  queue: TEXT,
  payload: TEXT,
  payloadEncoding: ENCODING,
  /** Lower-case hex, of the bytes. */
  payloadSha256: TEXT,
  encoding: TEXT,
  kind: TEXT,
  reference: TEXT,
  correlationId: TEXT,
  /** The payload is not the one that the letter came with. */
  edited: BOOLEAN,
})

export interface ExpireOlderRequest extends Shape<typeof EXPIRE> {}
export const EXPIRE = Type.Object({
  /** At least 1. */
  olderThanDays: Type.Integer({ minimum: 1 }),
  engine: Type.Optional(textUpTo(256)),
})

export const EXPIRED = Type.Object({ expired: INTEGER })
