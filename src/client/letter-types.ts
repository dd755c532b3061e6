/**
 * Types of the letter client: the names of the wire. Instants are ISO 8601 text in UTC with microseconds; a `Date`
 * would lose the last three digits.
 */
import type { CountKey, CountsQuery, GroupsQuery } from '../letters/numbers/shapes.ts'
import type { LetterQuery, Report } from '../letters/shapes.ts'
import type { PageRequest } from './envelope.ts'
import type { Time } from './times.ts'

export type {
  ActivityName,
  ActivityRange,
  ActivityRequest,
  LetterActivity,
  LetterCount,
  LetterCounts,
  OfficeOverview,
  SignatureDetail,
  SignatureGroup,
} from '../letters/numbers/shapes.ts'
export type {
  CapturedLetters,
  CaptureOutcome,
  ExpireOlderRequest,
  LetterAttempt,
  LetterDetail,
  LetterEvent,
  LetterItem,
  LetterKey,
  LetterStatus,
  LetterTotal,
  RetryPreview,
  RetryReceipt,
} from '../letters/shapes.ts'

/** Times may be given as dates. */
export type WithTimes<Asked, Name extends keyof Asked> = Omit<Asked, Name> & {
  readonly [Key in Name]?: Time
}

/** All that is given must hold. */
export interface LetterFilter extends WithTimes<LetterQuery, 'fromDate' | 'toDate'> {}

export interface LetterListRequest extends LetterFilter, PageRequest {}

/** A failure to put on file. */
export interface CaptureRequest
  extends WithTimes<
    Omit<Report, 'originalMessage' | 'originalMessageEncoding'>,
    'firstFailureAtUtc' | 'lastFailureAtUtc'
  > {
  readonly originalMessage: Uint8Array | string
}

export interface RetryLetterRequest {
  /** Sent instead of the original; left out: the original, byte for byte. */
  readonly payload?: Uint8Array | string
  readonly notes?: string
}

export type { CountKey }

export interface CountsRequest extends Omit<CountsQuery, 'by'> {
  /** Left out: by all keys. */
  readonly by?: readonly CountKey[]
}

export interface SignatureListRequest extends PageRequest, GroupsQuery {}
