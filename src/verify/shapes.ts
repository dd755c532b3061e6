/** The state of a check of the store, on the wire. */
import Type from 'typebox'
import {
  BOOLEAN,
  INTEGER,
  oneOf,
  orNull,
  type Shape,
  TEXT,
  TEXT_OR_NULL,
  TIME_OR_NULL,
  type Within,
} from '../api/shapes.ts'

export const STANDING = Type.Object({
  state: oneOf(['never', 'running', 'done', 'failed']),
  startedAtUtc: TIME_OR_NULL,
  finishedAtUtc: TIME_OR_NULL,
  progress: orNull(Type.Object({ label: TEXT, done: INTEGER, expected: INTEGER }), {
    description: 'Rows looked at, while it runs',
  }),
  error: { ...TEXT_OR_NULL, description: 'Why the store could not be checked' },
  checks: Type.Array(
    Type.Object({
      id: TEXT,
      title: TEXT,
      holds: BOOLEAN,
      findings: INTEGER,
      /** The first findings, as sentences. */
      samples: Type.Array(TEXT, { maxItems: 5 }),
    }),
    { description: 'Every promise of the store, once all of them are checked' },
  ),
})
export type Verification = Shape<typeof STANDING>
export type VerifyStanding = Within<Verification>
