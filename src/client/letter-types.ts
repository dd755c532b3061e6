/**
 * What callers give to the letter client and get from it: the names of the wire. Instants are ISO 8601 text in UTC with
 * microseconds, as the server sends them; a `Date` would lose the last three digits.
 */
import type { CountsQuery, GroupsQuery, TallyKey } from '../letters/numbers/shapes.ts'
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

/** Some of the fields are times, which callers may have as dates. */
export type WithTimes<Asked, Name extends keyof Asked> = Omit<Asked, Name> & {
  readonly [Key in Name]?: Time
}

/** Which letters; what is given must all hold. */
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

/** What letters are counted by. */
export type CountKey = TallyKey

/** Which letters are counted, and by what. */
export interface CountsRequest extends Omit<CountsQuery, 'by'> {
  /** Left out: by all keys. */
  readonly by?: readonly CountKey[]
}

/** Which groups. */
export interface SignatureListRequest extends PageRequest, GroupsQuery {}
