/** Engines as `GET /api/engines` shows them. */
import Type from 'typebox'
import { INTEGER, orNull, type Shape, TEXT, TIME_OR_NULL } from '../../api/shapes.ts'

const MILLISECONDS = orNull(INTEGER, { description: 'null without runs' })

/** Of the newest runs of one operation. */
export const OPERATION_VIEW = Type.Object({
  operation: TEXT,
  runs: INTEGER,
  succeeded: INTEGER,
  failed: INTEGER,
  /** From 0 to 1; null without runs. */
  successRate: orNull(Type.Number({ minimum: 0, maximum: 1 })),
  p50Ms: MILLISECONDS,
  p95Ms: MILLISECONDS,
  p99Ms: MILLISECONDS,
  lastAtUtc: TIME_OR_NULL,
})
export type EngineOperation = Shape<typeof OPERATION_VIEW>

const ENGINE_VIEW = Type.Object({
  name: TEXT,
  queue: orNull(TEXT, { description: 'null: there is nothing to lease' }),
  pending: Type.Integer({ description: 'Its pending letters' }),
  operations: Type.Array(OPERATION_VIEW, {
    description: 'Its own operations, and whatever else history has of it lately',
  }),
})
export type EngineOverview = Shape<typeof ENGINE_VIEW>

/** `basis` says what the numbers are taken from. */
export const ENGINES_VIEW = Type.Object({ items: Type.Array(ENGINE_VIEW), basis: TEXT })
export type EngineOverviews = Shape<typeof ENGINES_VIEW>
