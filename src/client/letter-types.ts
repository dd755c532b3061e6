/**
 * What callers give to the letter client and get from it: the names of the wire. Instants are ISO 8601 text in UTC with
 * microseconds, as the server sends them; a `Date` would lose the last three digits.
 */
import type { TextEncoding } from './bytes.ts'
import type { PageRequest } from './envelope.ts'
import type { HistoryStatus } from './history.ts'
import type { Time } from './times.ts'

export type LetterStatus = 'Pending' | 'Resolved' | 'Expired'

/** What names one letter. Every letter of a list is one. */
export interface LetterKey {
  readonly engine: string
  readonly rowKey: string
}

/** Which letters; what is given must all hold. */
export interface LetterFilter {
  readonly engine?: string
  readonly status?: LetterStatus
  readonly instanceId?: string
  /** Last failure at or after this time. */
  readonly fromDate?: Time
  /** Last failure before this time. */
  readonly toDate?: Time
  readonly source?: string
  readonly originalQueue?: string
  readonly signature?: string
  readonly correlationId?: string
  /** It was tried so often, at least. */
  readonly minAttempts?: number
  /** It was sent back, and its item was completed, or nothing was heard of it yet. */
  readonly outcome?: 'confirmed' | 'unconfirmed'
  /** Text in the error, the reference, the headers or the payload. */
  readonly q?: string
}

export interface LetterListRequest extends LetterFilter, PageRequest {}

/** A letter as lists show it: without its payload. */
export interface LetterItem extends LetterKey {
  readonly instanceId: string
  /** null when it came from no queue. */
  readonly originalQueue: string | null
  readonly errorMessage: string
  readonly dequeueCount: number
  readonly status: LetterStatus
  readonly firstFailureAtUtc: string
  readonly lastFailureAtUtc: string
  readonly correlationId: string
  readonly resolutionNotes: string | null
  readonly resolvedAtUtc: string | null
  readonly resolvedBy: string | null
  /** What ended it: `retry`, `discard`, `complete` (from its dead queue), `expire`; null while it is pending. */
  readonly resolution: string | null
  /** When the item of its retry was completed. */
  readonly confirmedAtUtc: string | null
  readonly source: string
  readonly sourceId: string
  /** The group of its error. */
  readonly signature: string
  /** Why it died: `attempts`, `expired`, `rejected` or `failed`. */
  readonly reason: string
  readonly errorClass: string
  /** The dead queue it lies in or belongs to. */
  readonly deadQueue: string | null
}

/** One failure of the case file. */
export interface LetterAttempt {
  readonly number: number
  readonly failedAtUtc: string
  readonly failedBy: string | null
  readonly errorClass: string
  readonly errorMessage: string
  readonly errorStack: string | null
}

/** Something that was done to a letter, or with it. */
export interface LetterEvent {
  readonly rowKey: string
  readonly operation: string
  readonly status: HistoryStatus
  readonly createdAtUtc: string
  readonly durationMs: number
  readonly actor: string | null
  readonly notes: string | null
  readonly error: string | null
}

/** A letter with its case file. `bytesOf` makes bytes of its texts. */
export interface LetterDetail extends LetterItem {
  readonly version: number
  readonly originalPartition: number | null
  readonly itemCreatedAtUtc: string | null
  /** Of a letter that is Expired. */
  readonly expiredAtUtc: string | null
  /** So long it is kept, at least, and can be restored; null while it is pending. */
  readonly restorableUntilUtc: string | null
  readonly originalMessage: string
  readonly originalMessageEncoding: TextEncoding
  /** Lower-case hex, of the bytes. */
  readonly originalMessageSha256: string
  /** What an operator made of the message; a retry sends this one. */
  readonly editedMessage: string | null
  readonly editedMessageEncoding: TextEncoding | null
  readonly encoding: string
  readonly kind: string
  readonly reference: string
  readonly headers: unknown
  readonly headersEncoding: TextEncoding | 'json' | null
  readonly errorStack: string | null
  readonly failedBy: string | null
  /** A consumer of its dead queue holds it. */
  readonly leased: boolean
  readonly leaseDeadlineUtc: string | null
  /** The item that the latest retry made, and its queue. */
  readonly sentAs: string | null
  readonly sentTo: string | null
  readonly attempts: readonly LetterAttempt[]
  readonly history: readonly LetterEvent[]
}

/** A failure to put on file. */
export interface CaptureRequest {
  readonly engine: string
  /** Yours for this message: it has one letter, however often it fails. */
  readonly sourceId: string
  readonly originalMessage: Uint8Array | string
  readonly errorMessage: string
  readonly errorClass?: string
  readonly errorStack?: string
  readonly instanceId?: string
  readonly originalQueue?: string
  /** Default: 1. */
  readonly dequeueCount?: number
  readonly firstFailureAtUtc?: Time
  /**
   * Default: when the office receives it. With the error it tells a new failure from a repetition of an earlier report; left out,
   * `dequeueCount` does.
   */
  readonly lastFailureAtUtc?: Time
  readonly correlationId?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** What became of failures that were put on file together. */
export interface CapturedLetters {
  readonly created: number
  readonly known: number
  readonly refused: number
  /** One for each failure, in their order. */
  readonly results: readonly CaptureOutcome[]
}

export type CaptureOutcome =
  | {
      /** `known`: its source id had a letter. A repetition changed nothing, a new failure is on top of it. */
      readonly outcome: 'created' | 'known'
      readonly letter: LetterKey & { readonly sourceId: string; readonly status: LetterStatus }
    }
  | {
      readonly outcome: 'refused'
      readonly error: { readonly code: string; readonly message: string; readonly details?: object }
    }

export interface RetryLetterRequest {
  /** Sent instead of the original; left out: the original, byte for byte. */
  readonly payload?: Uint8Array | string
  readonly notes?: string
}

export interface RetryReceipt {
  readonly messageId: string
  readonly queue: string
}

/** What a retry would send. */
export interface RetryPreview {
  readonly queue: string
  readonly payload: string
  readonly payloadEncoding: TextEncoding
  /** Lower-case hex, of the bytes. */
  readonly payloadSha256: string
  readonly encoding: string
  readonly kind: string
  readonly reference: string
  readonly correlationId: string
  /** The payload is not the one that the letter came with. */
  readonly edited: boolean
}

export interface ExpireOlderRequest {
  /** At least 1. */
  readonly olderThanDays: number
  readonly engine?: string
}

/** What letters are counted by. */
export type CountKey = 'source' | 'engine' | 'originalQueue' | 'status' | 'signature'

/** Which letters are counted, and by what. */
export interface CountsRequest extends Pick<LetterFilter, CountKey> {
  /** Left out: by all keys. */
  readonly by?: readonly CountKey[]
}

/** The letters that have the same keys; keys that are not counted by are left out. */
export interface LetterCount extends Partial<Pick<LetterItem, CountKey>> {
  readonly count: number
}

export interface LetterCounts {
  /** No count is zero. */
  readonly items: readonly LetterCount[]
  /** All that match, whatever they are counted by. */
  readonly totals: Readonly<Record<LetterStatus, number>>
}

/** How many letters match. */
export interface LetterTotal {
  readonly total: number
  /** False when there may be more: then `total` is as far as they were counted. */
  readonly exact: boolean
}

export type ActivityName = 'arrived' | 'retried' | 'confirmed' | 'returned' | 'discarded' | 'expired'
export type ActivityRange = '1h' | '24h' | '7d' | '30d'

/** Which time, and the activity of which letters. */
export interface ActivityRequest extends Omit<Pick<LetterFilter, CountKey>, 'status'> {
  /** Left out: 24h. */
  readonly range?: ActivityRange
}

/** What happened to letters over time. Bucket i starts at `fromUtc` + i · `bucketSeconds`; the last lasts still. */
export interface LetterActivity {
  readonly range: ActivityRange
  readonly bucketSeconds: number
  readonly fromUtc: string
  readonly toUtc: string
  readonly series: Readonly<Record<ActivityName, readonly number[]>>
}

/** The office at a glance. */
export interface OfficeOverview {
  readonly asOfUtc: string
  readonly letters: Readonly<Record<LetterStatus, number>>
  /** The pending letter whose last failure is the longest ago. */
  readonly oldestPending: (LetterKey & { readonly lastFailureAtUtc: string }) | null
  readonly arrivals: {
    readonly lastHour: number
    /** The median hour of the last week; null before there was a day to compare with. */
    readonly usualPerHour: number | null
  }
  /** Letters that died again after a retry, in the last 24 hours. */
  readonly returnedLastDay: number
  /** Letters that were sent back and of which nothing was heard yet. */
  readonly unconfirmed: number
  readonly sources: readonly {
    readonly source: string
    readonly pending: number
    readonly health: 'ok' | 'warn' | 'fail' | 'off'
    readonly note: string | null
  }[]
}

/** Which groups. */
export interface SignatureListRequest
  extends PageRequest,
    Pick<LetterFilter, 'source' | 'engine' | 'originalQueue'> {}

/** A group of letters with the same error. */
export interface SignatureGroup {
  readonly signature: string
  /** Of the algorithm that made the signature. */
  readonly version: number
  readonly errorClass: string
  /** What the errors have in common, for people. */
  readonly title: string
  /** Pending letters. */
  readonly open: number
  /** Letters of any status. */
  readonly total: number
  readonly firstSeenAtUtc: string
  readonly lastSeenAtUtc: string
  readonly sources: readonly string[]
  readonly engines: readonly string[]
  readonly originalQueues: readonly string[]
  /** The newest pending letter, else the newest. */
  readonly sample: (LetterKey & { readonly errorMessage: string }) | null
  /** Letters that arrived in each of the last 24 hours, the oldest first. */
  readonly trend: readonly number[]
}

/** A group with what became of its retries. */
export interface SignatureDetail extends SignatureGroup {
  /** All that were ever sent back; how many of these were confirmed, died again, and are neither yet. */
  readonly outcomes: Readonly<Record<'retried' | 'confirmed' | 'returned' | 'unconfirmed', number>>
}
