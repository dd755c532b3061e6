/** The fields of letters in the OpenAPI document, as `view.ts` shows them and as calls take them. */
import {
  DATE,
  ERROR,
  FILED_ENGINE,
  INTEGER,
  objectOf,
  PAGE_QUERY,
  SOUGHT_ENGINE,
  TEXT,
  TEXT_OR_NULL,
  TIME,
  TIME_OR_NULL,
  textUpTo,
} from '../../api/describe.ts'
import { SOURCE_SCHEMA } from '../kinds.ts'
import { REASONS, STATUSES } from '../letter.ts'
import { RETRY_OUTCOMES } from '../lists/filter.ts'
import { PAYLOAD_ENCODINGS } from '../reports/payload.ts'

const oneOf = (values: readonly string[]) => ({ type: 'string', enum: values })
const STATUS = oneOf(STATUSES)
const ENCODING = oneOf(PAYLOAD_ENCODINGS)
/** Programs that have none often send null; it means nothing else. */
const NOTES = { type: ['string', 'null'], maxLength: 4_000 }

/** Which letters. */
export const FILTER_QUERY = {
  engine: SOUGHT_ENGINE,
  status: STATUS,
  instanceId: TEXT,
  fromDate: DATE,
  toDate: DATE,
  source: SOURCE_SCHEMA,
  originalQueue: TEXT,
  signature: TEXT,
  correlationId: TEXT,
  minAttempts: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000_000,
    description: 'It was tried so often, at least',
  },
  outcome: {
    ...oneOf(RETRY_OUTCOMES),
    description: 'It was sent back, and its item was completed, or nothing was heard of it yet',
  },
  q: { type: 'string', description: 'Text in the error, the reference, the headers or the payload' },
}

export const LIST_QUERY = { ...FILTER_QUERY, ...PAGE_QUERY }

/** How many letters there are. */
export const TOTAL = objectOf({
  total: INTEGER,
  exact: { type: 'boolean', description: 'False when there may be more' },
})

const LETTER_FIELDS = {
  engine: TEXT,
  rowKey: TEXT,
  instanceId: TEXT,
  originalQueue: TEXT_OR_NULL,
  errorMessage: TEXT,
  dequeueCount: INTEGER,
  status: STATUS,
  firstFailureAtUtc: TIME,
  lastFailureAtUtc: TIME,
  correlationId: TEXT,
  resolutionNotes: TEXT_OR_NULL,
  resolvedAtUtc: TIME_OR_NULL,
  resolvedBy: TEXT_OR_NULL,
  resolution: TEXT_OR_NULL,
  confirmedAtUtc: TIME_OR_NULL,
  source: SOURCE_SCHEMA,
  sourceId: TEXT,
  signature: TEXT,
  reason: oneOf(REASONS),
  errorClass: TEXT,
  deadQueue: TEXT_OR_NULL,
}

/** A letter as lists show it. */
export const LETTER = objectOf(LETTER_FIELDS)

const ATTEMPT = objectOf({
  number: INTEGER,
  failedAtUtc: TIME,
  failedBy: TEXT_OR_NULL,
  errorClass: TEXT,
  errorMessage: TEXT,
  errorStack: TEXT_OR_NULL,
})

const EVENT = objectOf({
  engine: TEXT,
  rowKey: TEXT,
  operation: TEXT,
  status: oneOf(['Succeeded', 'Failed']),
  createdAtUtc: TIME,
  durationMs: INTEGER,
  actor: TEXT_OR_NULL,
  notes: TEXT_OR_NULL,
  error: TEXT_OR_NULL,
  letterVersion: { type: ['integer', 'null'] },
})

/** A letter with its case file. */
export const LETTER_DETAIL = objectOf({
  ...LETTER_FIELDS,
  version: INTEGER,
  originalPartition: { type: ['integer', 'null'] },
  itemCreatedAtUtc: TIME_OR_NULL,
  expiredAtUtc: TIME_OR_NULL,
  restorableUntilUtc: {
    ...TIME_OR_NULL,
    description: 'So long it is kept, at least, and can be restored; null while it is pending',
  },
  originalMessage: TEXT,
  originalMessageEncoding: ENCODING,
  originalMessageSha256: TEXT,
  editedMessage: TEXT_OR_NULL,
  editedMessageEncoding: TEXT_OR_NULL,
  encoding: TEXT,
  kind: TEXT,
  reference: TEXT,
  headers: { description: 'What came with the message: an object when it is JSON, else a text' },
  headersEncoding: TEXT_OR_NULL,
  errorStack: TEXT_OR_NULL,
  failedBy: TEXT_OR_NULL,
  leased: { type: 'boolean' },
  leaseDeadlineUtc: TIME_OR_NULL,
  sentAs: TEXT_OR_NULL,
  sentTo: TEXT_OR_NULL,
  attempts: { type: 'array', items: ATTEMPT },
  history: { type: 'array', items: EVENT },
})

/** The body of a capture. */
export const REPORT = {
  required: ['engine', 'originalMessage', 'errorMessage', 'sourceId'],
  fields: {
    engine: { ...FILED_ENGINE, ...textUpTo(256) },
    instanceId: { ...textUpTo(256), default: 'publisher' },
    originalQueue: { ...textUpTo(512), description: "Left out: the engine's queue, if it has one" },
    originalMessage: TEXT,
    originalMessageEncoding: { ...ENCODING, default: 'utf8' },
    errorMessage: TEXT,
    errorClass: TEXT,
    errorStack: TEXT,
    dequeueCount: { type: 'integer', minimum: 1, maximum: 2_147_483_647, default: 1 },
    firstFailureAtUtc: TIME,
    lastFailureAtUtc: {
      ...TIME,
      description:
        'Left out: the time of receipt. A report with the same sourceId, error and lastFailureAtUtc (left out: dequeueCount) as one before is a repetition of it',
    },
    correlationId: textUpTo(256),
    sourceId: textUpTo(512),
    headers: { type: 'object', additionalProperties: TEXT },
  },
}

/** The body of a report, which carries a whole message. */
export const REPORT_BYTES = 10_485_760

/** Reports of one batch. */
export const MOST_REPORTS = 1_000

const REPORT_OBJECT = { type: 'object', required: REPORT.required, properties: REPORT.fields }

/** The body of a capture of many. */
export const REPORTS = {
  required: ['letters'],
  fields: { letters: { type: 'array', minItems: 1, maxItems: MOST_REPORTS, items: REPORT_OBJECT } },
}

const FILED = objectOf({ engine: TEXT, rowKey: TEXT, sourceId: TEXT, status: STATUS })

/** What became of each report, in their order. */
export const CAPTURED = objectOf({
  created: INTEGER,
  known: INTEGER,
  refused: INTEGER,
  results: {
    type: 'array',
    items: {
      oneOf: [
        objectOf({ outcome: oneOf(['created', 'known']), letter: FILED }),
        objectOf({ outcome: { type: 'string', const: 'refused' }, error: ERROR }),
      ],
    },
  },
})

/** The body of a change. */
export const CHANGE = { required: ['status'], fields: { status: STATUS, resolutionNotes: NOTES } }

/** The body of a retry. */
export const RETRY = {
  fields: { payload: TEXT, payloadEncoding: { ...ENCODING, default: 'utf8' }, notes: NOTES },
}

/** What a retry answers: what was sent, or with `dryRun` what would be. */
export const RETRIED = {
  oneOf: [
    objectOf({ messageId: TEXT, queue: TEXT }),
    objectOf({
      dryRun: { type: 'boolean', const: true },
      queue: TEXT,
      payload: TEXT,
      payloadEncoding: ENCODING,
      payloadSha256: TEXT,
      encoding: TEXT,
      kind: TEXT,
      reference: TEXT,
      correlationId: TEXT,
      edited: { type: 'boolean' },
    }),
  ],
}

/** The body of a bulk expiry. */
export const EXPIRE = {
  required: ['olderThanDays'],
  fields: { olderThanDays: { type: 'integer', minimum: 1 }, engine: textUpTo(256) },
}

export const EXPIRED = objectOf({ expired: INTEGER })
