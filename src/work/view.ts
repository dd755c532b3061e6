/** Runs as the API shows them, and as the OpenAPI document describes that. */

import { INTEGER, objectOf, pageOf, TEXT, TEXT_OR_NULL, TIME, TIME_OR_NULL } from '../api/describe.ts'
import type { Instant } from '../core/clock.ts'
import { formatMicros } from '../core/timestamp.ts'
import { RUN_STATES, type Run } from './run-rows.ts'

export const optionalTime = (at: Instant | null): string | null => (at === null ? null : formatMicros(at))

/** More digits than are known would be new to those who watch every time. */
export const measuredRate = (rate: number | null): number | null =>
  rate === null ? null : Number(rate.toPrecision(3))

/** A run as lists show it. */
export function runFields(run: Run) {
  const { expected, done, skipped, failed, rateNow } = run
  const remaining = expected === null ? null : Math.max(0, expected - done - skipped - failed)
  const isUnderWay = run.state === 'running' && rateNow !== null && rateNow > 0
  return {
    id: run.id,
    kind: run.kind,
    state: run.state,
    about: run.about,
    counts: { expected, done, skipped, failed, remaining },
    rate: run.rate,
    startedBy: run.actor,
    startedAtUtc: formatMicros(run.startedAt),
    endedAtUtc: optionalTime(run.endedAt),
    // No kind of run waits for an instant; clients know the field.
    dueAtUtc: null,
    note: run.note,
    resumed: run.resumed,
    isHeld: run.owner !== null,
    rateNow: measuredRate(rateNow),
    secondsLeft: isUnderWay && remaining !== null ? Math.ceil(remaining / rateNow) : null,
  }
}

const INTEGER_OR_NULL = { type: ['integer', 'null'] }
const NUMBER_OR_NULL = { type: ['number', 'null'] }

/** A run in the OpenAPI document. */
export const RUN = objectOf({
  id: TEXT,
  kind: { type: 'string', description: 'What is done: expire, webhook-requeue, webhook-purge …' },
  state: { type: 'string', enum: RUN_STATES },
  about: { type: 'string', description: 'What it is done to, for people' },
  counts: {
    ...objectOf({
      expected: INTEGER_OR_NULL,
      done: INTEGER,
      skipped: INTEGER,
      failed: INTEGER,
      remaining: INTEGER_OR_NULL,
    }),
    description: 'expected = done + skipped + failed + remaining; null: it is not known before the end',
  },
  rate: { ...NUMBER_OR_NULL, description: 'Rows a second that are allowed; null: as fast as it goes' },
  startedBy: TEXT,
  startedAtUtc: TIME,
  endedAtUtc: TIME_OR_NULL,
  dueAtUtc: { ...TIME_OR_NULL, description: 'It has nothing to do before' },
  note: { ...TEXT_OR_NULL, description: 'Why it is paused, failed or was cancelled' },
  resumed: { type: 'integer', description: 'How often it went on after a restart, or on another server' },
  isHeld: { type: 'boolean', description: 'A server is at it now' },
  rateNow: { ...NUMBER_OR_NULL, description: 'Rows a second, over the last seconds' },
  secondsLeft: { ...NUMBER_OR_NULL, description: 'At this rate' },
})

/** Runs, the newest first. */
export const RUNS = pageOf(RUN)
