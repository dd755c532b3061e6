/** The acts on letters in words, and on which letters each is possible. */
import type { RedriveAction } from '../api/redrive-types.ts'
import type { LetterFilter } from '../api/types.ts'

/** What can be done with one letter by itself. */
export type Act = Exclude<RedriveAction, 'move'>

/** The statuses that a letter may have before the act. */
const FROM: Readonly<Record<RedriveAction, readonly string[]>> = {
  retry: ['Pending'],
  move: ['Pending'],
  discard: ['Pending'],
  restore: ['Resolved', 'Expired'],
}

/** Whether the act is possible on any letter that the filter lets through. */
export function isPossible(act: RedriveAction, { status, outcome }: LetterFilter): boolean {
  // Only resolved letters have an outcome.
  if (outcome !== undefined) return act === 'restore' && (status === undefined || status === 'Resolved')
  return status === undefined || FROM[act].includes(status)
}

/** The filter with the status that the act needs; as it is where several statuses do. */
export function filterFor(act: RedriveAction, filter: LetterFilter): LetterFilter {
  const [only, ...others] = FROM[act]
  return filter.status !== undefined || only === undefined || others.length > 0
    ? filter
    : { ...filter, status: only }
}

export const VERBS: Readonly<Record<RedriveAction, string>> = {
  retry: 'Retry',
  move: 'Move',
  discard: 'Discard',
  restore: 'Restore',
}

/** How it is called once it is done to a letter. */
export const DONE_WORDS: Readonly<Record<RedriveAction, string>> = {
  retry: 'sent',
  move: 'moved',
  discard: 'discarded',
  restore: 'restored',
}

/** What letters cannot be, where the act is refused. */
export const PAST_WORDS: Readonly<Record<RedriveAction, string>> = { ...DONE_WORDS, retry: 'retried' }

/** What the act means, in a sentence or two. */
export const MEANINGS: Readonly<Record<RedriveAction, string>> = {
  retry: 'Each letter goes back to where it came from. One that fails again returns as the same letter.',
  move: 'Each letter goes to another queue. One that fails there returns as the same letter.',
  discard: 'Each letter ends without being sent back. Restorable until retention removes it.',
  restore:
    'Each letter becomes pending again. A retry that nobody has begun to process is recalled first; one that was processed can be sent twice from then on.',
}
