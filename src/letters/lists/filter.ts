/** Filters of lists, and their meaning in the numbers of the store. All given must hold. */
import { type Instant, instant } from '../../core/clock.ts'
import type { TokenFields } from '../../core/page-token.ts'
import { formatTimestamp } from '../../core/timestamp.ts'
import type { Session } from '../../store/database.ts'
import { type LetterStatus, STATUS, STATUSES } from '../letter.ts'
import { findDrawers } from '../numbers/find-drawers.ts'
import type { LetterQuery, RetryOutcome } from '../shapes.ts'
import { ANY_TIME, justBefore, type Span, TOP } from './positions.ts'

/** The query of a list, with instants for dates. */
export type LetterFilter = {
  readonly [Name in keyof LetterQuery]?:
    | (Name extends 'fromDate' | 'toDate' ? Instant : LetterQuery[Name])
    | undefined
}

/** Continuation tokens are bound to this form. */
export function filterFields(filter: LetterFilter): TokenFields {
  const fields: Record<string, string> = { list: 'letters' }
  for (const [name, value] of Object.entries(filter)) {
    if (value === undefined) continue
    fields[name] = typeof value === 'bigint' ? formatTimestamp(instant(value)) : String(value)
  }
  return fields
}

/** A filter in the numbers of the store. */
export interface FilterPlan {
  readonly statuses: readonly number[]
  /** null: any. */
  readonly drawers: readonly number[] | null
  readonly instanceId: string | null
  readonly correlationId: string | null
  /** Looked up letter by letter, because no index has them; null: none. */
  readonly facts: Facts | null
  readonly span: Span
}

export interface Facts {
  readonly minAttempts: number
  /** null: any, also never sent back. */
  readonly outcome: RetryOutcome | null
}

/** Whether letters_unconfirmed has everything that is asked for. */
export const isOfUnconfirmed = ({ facts, instanceId, correlationId }: FilterPlan): boolean =>
  facts?.outcome === 'unconfirmed' && instanceId === null && correlationId === null

/** null: no letter can match. */
export async function planFilter(session: Session, filter: LetterFilter): Promise<FilterPlan | null> {
  const { source, engine, originalQueue, signature, instanceId, correlationId, minAttempts, outcome } = filter
  // No letter has U+0000 here, and PostgreSQL would refuse to look for it.
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

/** Only resolved letters have an outcome. */
export function statusesOf({ status, outcome }: LetterFilter): readonly LetterStatus[] {
  const asked = status === undefined ? STATUSES : [status]
  return outcome === undefined ? asked : asked.filter((name) => name === 'Resolved')
}
