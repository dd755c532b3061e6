import Type from 'typebox'
import {
  INTEGER,
  INTEGER_OR_NULL,
  NUMBER,
  oneOf,
  orNull,
  type Shape,
  TEXT,
  TIME,
  TIME_OR_NULL,
} from '../api/shapes.ts'

export const RUN_STATES = ['running', 'paused', 'done', 'cancelled', 'failed'] as const
export type RunState = (typeof RUN_STATES)[number]

/** Progress of work that servers carry out. `what` is measured by the second. */
export const progressOf = (what: string) => ({
  /** How often it went on after a restart, or on another server. */
  resumed: Type.Integer({ description: 'How often it went on after a restart, or on another server' }),
  /** A server is at it now. */
  isHeld: Type.Boolean({ description: 'A server is at it now' }),
  /** A second, over the last seconds; null when it is not under way. */
  rateNow: orNull(NUMBER, { description: `${what} a second, over the last seconds` }),
  /** At this rate; null when that is not known. */
  secondsLeft: orNull(NUMBER, { description: 'At this rate' }),
})

export interface RunItem extends Shape<typeof RUN> {}
export const RUN = Type.Object({
  id: TEXT,
  /** What is done: `expire`, `webhook-requeue`, `webhook-purge` and so on. */
  kind: Type.String({ description: 'What is done: expire, webhook-requeue, webhook-purge …' }),
  state: oneOf(RUN_STATES),
  /** What it is done to, for people. */
  about: Type.String({ description: 'What it is done to, for people' }),
  /** expected = done + skipped + failed + remaining; null: it is not known before the end. */
  counts: Type.Object(
    {
      expected: INTEGER_OR_NULL,
      done: INTEGER,
      skipped: INTEGER,
      failed: INTEGER,
      remaining: INTEGER_OR_NULL,
    },
    { description: 'expected = done + skipped + failed + remaining; null: it is not known before the end' },
  ),
  /** Rows a second that are allowed; null: as fast as it goes. */
  rate: orNull(NUMBER, { description: 'Rows a second that are allowed; null: as fast as it goes' }),
  startedBy: TEXT,
  startedAtUtc: TIME,
  endedAtUtc: TIME_OR_NULL,
  /** It has nothing to do before. */
  dueAtUtc: orNull(TIME, { description: 'It has nothing to do before' }),
  /** Why it is paused, failed or was cancelled. */
  note: orNull(TEXT, { description: 'Why it is paused, failed or was cancelled' }),
  ...progressOf('Rows'),
})

export const WHY = Type.Object({ reason: Type.Optional(Type.String({ maxLength: 4_000 })) })
