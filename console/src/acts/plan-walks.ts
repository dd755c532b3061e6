/** Which lists a plan walks, up to which letter, and the sentence it begins with. */
import { later } from '../../../src/core/clock.ts'
import { formatMicros, parseTimestamp } from '../../../src/core/timestamp.ts'
import type { LetterFilter, LetterItem } from '../api/types.ts'
import { grouped } from '../time/format.ts'
import type { Act } from './run.ts'

/** The statuses that a letter may have before the act. */
const FROM: Readonly<Record<Act, readonly string[]>> = {
  retry: ['Pending'],
  discard: ['Pending'],
  restore: ['Resolved', 'Expired'],
}

/** The lists of the letters of `filter` on which the act is possible; none when it is on no letter of it. */
export function walksOf(act: Act, filter: LetterFilter): readonly LetterFilter[] {
  // Only resolved letters have an outcome.
  if (filter.outcome !== undefined) {
    const possible = act === 'restore' && (filter.status === undefined || filter.status === 'Resolved')
    return possible ? [{ ...filter, status: 'Resolved' }] : []
  }
  return FROM[act].flatMap((status) =>
    filter.status === undefined || filter.status === status ? [{ ...filter, status }] : [],
  )
}

/** The list without letters that failed after `newest`: what arrives after the plan was made is not part of it. */
export function upTo(filter: LetterFilter, newest: Pick<LetterItem, 'lastFailureAtUtc'>): LetterFilter {
  const last = parseTimestamp(newest.lastFailureAtUtc)
  if (!last.ok) return filter
  const given = filter.toDate === undefined ? null : parseTimestamp(filter.toDate)
  const end = later(last.at, 1n)
  return given?.ok === true && given.at <= end ? filter : { ...filter, toDate: formatMicros(end) }
}

const VERBS: Readonly<Record<Act, string>> = { retry: 'Retry', discard: 'Discard', restore: 'Restore' }

/** `Retry 120 letters of …`. */
export const sentenceOf = (act: Act, count: number, what: string): string =>
  `${VERBS[act]} ${grouped(count)} ${count === 1 ? what.replace(/\bletters\b/, 'letter') : what}`

/** What the act means, as one sentence. */
export const MEANINGS: Readonly<Record<Act, string>> = {
  retry:
    'Each goes back to where it came from, as it is; those that fail again come back as the same letters.',
  discard: 'Each ends without being sent back. It can be restored until its retention is over.',
  restore:
    'Each is pending again. What a retry sent and nobody has begun is taken back first; what was processed can be sent twice from then on.',
}

/** Why there is nothing to do. */
export const NOTHING: Readonly<Record<Act, string>> = {
  retry: 'None of these letters is pending, and only pending ones can be retried. Restore them first.',
  discard: 'None of these letters is pending, and only pending ones can be discarded.',
  restore: 'All of these letters are pending already: there is nothing to restore.',
}
