/** What lists of letters can be asked for, and what that means in the numbers of a store. All parts given must hold. */
import { type Instant, instant } from '../../core/clock.ts'
import type { TokenFields } from '../../core/page-token.ts'
import { formatTimestamp } from '../../core/timestamp.ts'
import type { Session } from '../../store/database.ts'
import type { SourceName } from '../kinds.ts'
import { type LetterStatus, STATUS, STATUSES } from '../letter.ts'
import { findDrawers } from '../numbers/find-drawers.ts'
import type { RetryOutcome } from '../shapes.ts'
import { ANY_TIME, justBefore, type Span, TOP } from './positions.ts'

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

/** A filter in the numbers of the store. */
export interface Choice {
  readonly statuses: readonly number[]
  /** null: in any drawer. */
  readonly drawers: readonly number[] | null
  readonly instanceId: string | null
  readonly correlationId: string | null
  /** What must be looked up for each letter, because no order of the list tells it; null: nothing. */
  readonly facts: Facts | null
  /** The whole of what the filter's dates allow. */
  readonly span: Span
}

/** What must be true of a letter beside where it lies. */
export interface Facts {
  readonly minAttempts: number
  /** null: any, also that it was never sent back. */
  readonly outcome: RetryOutcome | null
}

/** Whether its letters are found by their own index, which knows all that is asked of them. */
export const isOfUnconfirmed = ({ facts, instanceId, correlationId }: Choice): boolean =>
  facts?.outcome === 'unconfirmed' && instanceId === null && correlationId === null

/** Finds out what the filter means on this store; null when no letter can match. */
export async function chooseLetters(session: Session, filter: LetterFilter): Promise<Choice | null> {
  const { source, engine, originalQueue, signature, instanceId, correlationId, minAttempts, outcome } = filter
  // No letter has U+0000 in these, and PostgreSQL would refuse to look for it.
  if ([instanceId, correlationId].some((text) => text?.includes('\0'))) return null
  const statuses = statusesOf(filter)
  if (statuses.length === 0) return null
  let drawers: number[] | null = null
  if ([source, engine, originalQueue, signature].some((text) => text !== undefined)) {
    drawers = await findDrawers(session, filter)
    if (drawers.length === 0) return null
  }
  return {
    statuses: statuses.map((name) => STATUS[name]),
    drawers,
    instanceId: instanceId ?? null,
    correlationId: correlationId ?? null,
    facts:
      minAttempts === undefined && outcome === undefined
        ? null
        : { minAttempts: minAttempts ?? 0, outcome: outcome ?? null },
    span: {
      below: filter.toDate === undefined ? TOP : justBefore(filter.toDate),
      from: filter.fromDate ?? ANY_TIME,
    },
  }
}

/** What was sent back is resolved, as long as it has an outcome. */
export function statusesOf({ status, outcome }: LetterFilter): readonly LetterStatus[] {
  const asked = status === undefined ? STATUSES : [status]
  return outcome === undefined ? asked : asked.filter((name) => name === 'Resolved')
}
