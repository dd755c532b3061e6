/** Entries of history on the wire. */
import Type from 'typebox'
import {
  type Asked,
  DATE,
  ENCODING_OR_NULL,
  FILED_ENGINE,
  INTEGER,
  oneOf,
  orNull,
  type Shape,
  SOUGHT_ENGINE,
  TEXT,
  TEXT_OR_NULL,
  TIME,
  textUpTo,
} from '../api/shapes.ts'

export const HISTORY_STATUSES = ['Succeeded', 'Failed'] as const
export type HistoryStatus = (typeof HISTORY_STATUSES)[number]
export const HISTORY_STATUS = oneOf(HISTORY_STATUSES)

/** Fields that entries share with the events of a letter's case file. */
export const OPERATION = {
  engine: TEXT,
  rowKey: TEXT,
  operation: TEXT,
  status: HISTORY_STATUS,
  createdAtUtc: TIME,
  durationMs: INTEGER,
  /** Who did it; null where nobody is named. */
  actor: TEXT_OR_NULL,
}
export const OPERATION_TEXTS = { notes: TEXT_OR_NULL, error: TEXT_OR_NULL }

/** An operation of an engine, or an act on a letter, as lists show it: without input and output. */
export interface HistoryItem extends Shape<typeof ENTRY> {}
export const ENTRY = Type.Object({ ...OPERATION, instanceId: TEXT, correlationId: TEXT })

/** An entry with its input and output. */
export interface HistoryDetail extends Shape<typeof ENTRY_DETAIL> {}
export const ENTRY_DETAIL = Type.Object({
  ...ENTRY.properties,
  input: TEXT_OR_NULL,
  inputEncoding: ENCODING_OR_NULL,
  output: TEXT_OR_NULL,
  outputEncoding: ENCODING_OR_NULL,
  ...OPERATION_TEXTS,
  /** The letter that it concerns, while that is retained. */
  letter: orNull(Type.Object({ engine: TEXT, rowKey: TEXT })),
})

/** All given must hold. */
export interface HistoryQuery extends Asked<typeof HISTORY_QUERY> {}
export const HISTORY_QUERY = {
  engine: SOUGHT_ENGINE,
  instanceId: TEXT,
  status: HISTORY_STATUS,
  operation: TEXT,
  fromDate: DATE,
  toDate: DATE,
  correlationId: TEXT,
}

/** Part of index keys and row keys. */
const ID = textUpTo(256)
const ANY = Type.Unknown({ description: 'Any JSON value; kept as it is written' })

/** An operation to put on record. */
export interface RecordRequest extends Shape<typeof RECORD> {}
export const RECORD = Type.Object({
  engine: FILED_ENGINE,
  /** Left out: `publisher`. */
  instanceId: Type.Optional(ID),
  operation: ID,
  status: HISTORY_STATUS,
  /** A whole number. */
  durationMs: Type.Integer({ minimum: 0 }),
  /** A text is kept as it is, any other value as JSON. */
  input: Type.Optional(ANY),
  output: Type.Optional(ANY),
  /** What failed; needed when `status` is `Failed`. */
  error: Type.Optional(Type.String({ description: 'What failed; needed when status is Failed' })),
  correlationId: Type.Optional(ID),
  /** Yours for this operation: the same one twice is one entry. */
  sourceId: Type.Optional(ID),
})
