/** The filters that are one press away: they replace what a query says about status and outcome, and keep the rest. */
import type { LetterFilter } from '../api/types.ts'

export interface QuickFilter {
  readonly title: string
  readonly part: Pick<LetterFilter, 'status' | 'outcome'>
}

export const QUICK_FILTERS: readonly QuickFilter[] = [
  { title: 'Pending', part: { status: 'Pending' } },
  { title: 'Sent, unconfirmed', part: { outcome: 'unconfirmed' } },
  { title: 'Resolved', part: { status: 'Resolved' } },
  { title: 'Expired', part: { status: 'Expired' } },
  { title: 'All', part: {} },
]

export function withQuickFilter(
  { status, outcome, ...rest }: LetterFilter,
  { part }: QuickFilter,
): LetterFilter {
  return { ...rest, ...part }
}

/** Whether the filter asks for exactly these statuses. */
export const isChosen = (filter: LetterFilter, { part }: QuickFilter): boolean =>
  filter.status === part.status && filter.outcome === part.outcome
