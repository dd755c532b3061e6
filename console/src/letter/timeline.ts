/** What happened to a letter, in one line of time: its failures, what was done with it, and what came of that. */
import { errorLine } from '../acts/error-line.ts'
import type { LetterDetail, LetterEvent } from '../api/types.ts'

export interface Moment {
  readonly id: string
  readonly at: string
  readonly kind: 'failure' | 'act' | 'good' | 'bad'
  readonly title: string
  readonly by: string | null
  /** What was said about it, or the error. */
  readonly says: string | null
}

type Meaning = readonly [title: string, kind: Moment['kind']]

/** In words; operations that are not here are shown under their names. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  capture: ['Put on file', 'act'],
  retry: ['Sent back', 'act'],
  discard: ['Discarded', 'act'],
  complete: ['Completed from its dead queue', 'good'],
  expire: ['Given up', 'act'],
  restore: ['Restored', 'act'],
  reopen: ['Returned: it failed again', 'bad'],
  confirm: ['Confirmed: what was sent was completed', 'good'],
  'kafka.received': ['Received from Kafka', 'act'],
  'kafka.reopened': ['Returned: it failed again', 'bad'],
  'kafka.refused': ['Its processor refused it', 'bad'],
  'kafka.processor_failed': ['Its processor failed', 'bad'],
  'kafka.published': ['Published', 'act'],
  'kafka.publish_failed': ['Not published', 'bad'],
  'kafka.uncertain': ['Uncertain whether it was published', 'bad'],
  'kafka.resent': ['Published once more', 'act'],
  'kafka.discarded': ['Discarded', 'act'],
  'kafka.reassigned': ['Given to another service', 'act'],
}

const RETURNS: readonly string[] = ['reopen', 'kafka.reopened']

/** All moments, the newest first. Where an act and a failure share their time, the act came of the failure. */
export function timelineOf({
  attempts,
  history,
}: Pick<LetterDetail, 'attempts' | 'history'>): readonly Moment[] {
  const failures = attempts.map(
    (attempt): Moment => ({
      id: `failure ${attempt.number}`,
      at: attempt.failedAtUtc,
      kind: 'failure',
      title: `Failure ${attempt.number}`,
      by: attempt.failedBy,
      says: errorLine(attempt),
    }),
  )
  const acts = history.map((event): Moment => {
    const [title, kind] = MEANINGS[event.operation] ?? [event.operation, 'act']
    return {
      id: event.rowKey,
      at: event.createdAtUtc,
      kind: event.status === 'Failed' ? 'bad' : kind,
      title: event.status === 'Failed' && kind !== 'bad' ? `${title}: failed` : title,
      by: event.actor,
      says: saysOf(event),
    }
  })
  // The sort is stable: acts stay before failures of the same time.
  return [...acts, ...failures].sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0))
}

/** Notes that say no more than the act does are left out. */
const saysOf = ({ notes, error }: LetterEvent): string | null =>
  [notes === 'Retried' ? null : notes, error].filter((text) => text !== null && text !== '').join('\n') ||
  null

/** When a pending letter came back, if that was the last that happened to it; null otherwise. */
export function returnedAt({ status, history }: Pick<LetterDetail, 'status' | 'history'>): string | null {
  if (status !== 'Pending') return null
  const moves = history.filter(({ operation }) =>
    [...RETURNS, 'retry', 'restore', 'capture'].includes(operation),
  )
  const last = moves.reduce<LetterEvent | null>(
    (newest, event) => (newest === null || event.createdAtUtc > newest.createdAtUtc ? event : newest),
    null,
  )
  return last !== null && RETURNS.includes(last.operation) ? last.createdAtUtc : null
}
