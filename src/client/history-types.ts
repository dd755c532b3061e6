/** What callers give to the history client and get from it: the names of the wire, as for letters. */
import type { TextEncoding } from './bytes.ts'
import type { PageRequest } from './envelope.ts'
import type { LetterFilter, LetterKey } from './letter-types.ts'
import type { Time } from './times.ts'

export type HistoryStatus = 'Succeeded' | 'Failed'

/** Which entries; what is given must all hold. */
export interface HistoryFilter extends Pick<LetterFilter, 'engine' | 'instanceId' | 'correlationId'> {
  readonly status?: HistoryStatus
  readonly operation?: string
  readonly fromDate?: Time
  readonly toDate?: Time
}

export interface HistoryListRequest extends HistoryFilter, PageRequest {}

/** An operation of an engine, or an act on a letter, as lists show it: without input and output. */
export interface HistoryItem {
  readonly engine: string
  readonly rowKey: string
  readonly instanceId: string
  readonly operation: string
  readonly status: HistoryStatus
  readonly durationMs: number
  readonly createdAtUtc: string
  readonly correlationId: string
  /** Who did it; null where nobody is named. */
  readonly actor: string | null
}

export interface HistoryDetail extends HistoryItem {
  readonly input: string | null
  readonly inputEncoding: TextEncoding | null
  readonly output: string | null
  readonly outputEncoding: TextEncoding | null
  readonly error: string | null
  readonly notes: string | null
  /** The letter that it concerns, while that is retained. */
  readonly letter: LetterKey | null
}

/** An operation to put on record. */
export interface RecordRequest {
  readonly engine: string
  readonly operation: string
  readonly status: HistoryStatus
  /** A whole number. */
  readonly durationMs: number
  /** Left out: `publisher`. */
  readonly instanceId?: string
  /** A text is kept as it is, any other value as JSON. */
  readonly input?: unknown
  readonly output?: unknown
  /** What failed; needed when `status` is `Failed`. */
  readonly error?: string
  readonly correlationId?: string
  /** Yours for this operation: the same one twice is one entry. */
  readonly sourceId?: string
}
