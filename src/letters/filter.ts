/** What lists of letters can be asked for. All parts given must hold. */
import { type Instant, instant } from '../core/clock.ts'
import type { TokenFields } from '../core/page-token.ts'
import { formatTimestamp } from '../core/timestamp.ts'
import type { LetterStatus, SourceName } from './letter.ts'

/** What is known of letters that were sent back: their item was completed, or nothing was heard of it yet. */
export const RETRY_OUTCOMES = ['confirmed', 'unconfirmed'] as const
export type RetryOutcome = (typeof RETRY_OUTCOMES)[number]

export interface LetterFilter {
  readonly engine?: string | undefined
  readonly status?: LetterStatus | undefined
  readonly instanceId?: string | undefined
  /** The last failure is at this instant or later. */
  readonly fromDate?: Instant | undefined
  /** The last failure is before this instant. */
  readonly toDate?: Instant | undefined
  readonly source?: SourceName | undefined
  readonly originalQueue?: string | undefined
  /** A fingerprint. */
  readonly signature?: string | undefined
  readonly correlationId?: string | undefined
  /** It was tried so often, at least. */
  readonly minAttempts?: number | undefined
  /** It was sent back, and this is known of it. */
  readonly outcome?: RetryOutcome | undefined
  /** A text that the letter contains: in its error, ids, reference, headers or payload. */
  readonly q?: string | undefined
}

/** The filter in the one form that continuation tokens are bound to. */
export function filterFields(filter: LetterFilter): TokenFields {
  const fields: Record<string, string> = { list: 'letters' }
  for (const [name, value] of Object.entries(filter)) {
    if (value === undefined) continue
    fields[name] = typeof value === 'bigint' ? formatTimestamp(instant(value)) : String(value)
  }
  return fields
}
