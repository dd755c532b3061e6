/** What the API says of an account. */
import Type from 'typebox'
import { type Shape, TEXT, TIME_OR_NULL } from '../../api/shapes.ts'

/** Open acts and sends are counted no further: an account may be away for days, and health is asked for often. */
export const MOST_COUNTED = 1_000

export const counted = (count: number): string =>
  count < MOST_COUNTED ? String(count) : `${MOST_COUNTED} or more`

/** How far a table or queue was read. */
export interface AzureReading extends Shape<typeof READING> {}
export const READING = Type.Object({
  name: TEXT,
  /** The service's time of the newest row that was read; null for queues. */
  readToUtc: TIME_OR_NULL,
  /** When it was last read to its end. */
  readAtUtc: TIME_OR_NULL,
  exists: Type.Boolean(),
})

export interface AzureOverview extends Shape<typeof OVERVIEW> {}
export const OVERVIEW = Type.Object({
  configured: Type.Boolean({
    description: 'Whether this server has an account; without, all else is left out',
  }),
  account: Type.Optional(TEXT),
  unwritten: Type.Optional(
    Type.Integer({ description: `Acts that are not yet written to the table, counted to ${MOST_COUNTED}` }),
  ),
  unwrittenSinceUtc: Type.Optional(TIME_OR_NULL),
  uncertain: Type.Optional(
    Type.Integer({
      description: `Letters of which nobody knows whether their message left, counted to ${MOST_COUNTED}`,
    }),
  ),
  troubles: Type.Optional(Type.Array(TEXT)),
  readings: Type.Optional(Type.Array(READING)),
})
