/** What happened to a letter, in one line of time: its failures, what was done with it, and what came of that. */
import { errorLine } from '../acts/error-line.ts'
import type { LetterAttempt, LetterDetail, LetterEvent } from '../api/types.ts'

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
  capture: ['Captured', 'act'],
  retry: ['Sent back', 'act'],
  discard: ['Discarded', 'act'],
  complete: ['Completed in its dead queue', 'good'],
  expire: ['Expired', 'act'],
  restore: ['Restored', 'act'],
  reopen: ['Returned: failed again', 'bad'],
  confirm: ['Confirmed', 'good'],
  'kafka.received': ['Received from Kafka', 'act'],
  'kafka.reopened': ['Returned: failed again', 'bad'],
  'kafka.refused': ['Refused by its processor', 'bad'],
  'kafka.processor_failed': ['Its processor failed', 'bad'],
  'kafka.published': ['Published', 'act'],
  'kafka.publish_failed': ['Not published', 'bad'],
  'kafka.uncertain': ['Uncertain: may have been published', 'bad'],
  'kafka.resent': ['Published again', 'act'],
  'kafka.discarded': ['Discarded', 'act'],
  'kafka.reassigned': ['Moved to another service', 'act'],
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
      title: `Failed, attempt ${attempt.number}`,
      by: attempt.failedBy,
      says: isSameError(attempt, attempts) ? null : errorLine(attempt),
    }),
  )
  const acts = history
    .filter((event) => !isAttempt(event, attempts))
    .map((event): Moment => {
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

/** The error of the last attempt stands at the top of the page; where all had it, it is not said again. */
const isSameError = (attempt: LetterAttempt, all: readonly LetterAttempt[]): boolean => {
  const last = all.reduce((newest, each) => (each.number > newest.number ? each : newest), attempt)
  return errorLine(attempt) === errorLine(last)
}

const SAME_MOMENT_MS = 1_000

/** A run of an engine that failed is in history, and is an attempt of the letter: one failure. */
const isAttempt = (event: LetterEvent, attempts: readonly LetterAttempt[]): boolean =>
  event.status === 'Failed' &&
  MEANINGS[event.operation] === undefined &&
  attempts.some(
    ({ failedAtUtc }) => Math.abs(Date.parse(failedAtUtc) - Date.parse(event.createdAtUtc)) < SAME_MOMENT_MS,
  )

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
