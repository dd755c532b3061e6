/** Redrives in the OpenAPI document, as `view.ts` shows them and as calls take them. */
import {
  INTEGER,
  objectOf,
  PAGE_QUERY,
  pageOf,
  TEXT,
  TEXT_OR_NULL,
  TIME,
  TIME_OR_NULL,
  textUpTo,
} from '../../api/describe.ts'
import { SOURCE_SCHEMA } from '../../letters/kinds.ts'
import { ITEM_HEADERS } from '../../letters/letter.ts'
import { PAYLOAD_ENCODINGS } from '../../letters/reports/payload.ts'
import { FILTER_QUERY } from '../../letters/routes/describe.ts'
import {
  COUNTS,
  EXCEPTION_REASONS,
  MEMBER_OUTCOMES,
  PLAN_NUMBERS,
  REDRIVE_ACTIONS,
  REDRIVE_ORDERS,
  REDRIVE_STATES,
} from '../redrive.ts'
import { MOST_MAPPING_BYTES, MOST_OPERATIONS } from '../repair/recipe.ts'
import { MAX_SHOWN_PAYLOAD } from '../view.ts'
import { MAX_ENGINE, MAX_FILTER_TEXT, MAX_IDS, MAX_ROW_KEY, MAX_SIGNATURE } from './selection.ts'
import { CANARY_DEFAULTS, MAX_CANARY, MAX_OUTCOMES, MAX_RATE, MAX_WAIT_SECONDS, MIN_RATE } from './terms.ts'

const oneOf = (values: readonly string[]) => ({ type: 'string', enum: values })
const orNull = <Schema extends { readonly type: string }>(schema: Schema) => ({
  ...schema,
  type: [schema.type, 'null'],
})
const integers = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, INTEGER]))
const NUMBER_OR_NULL = { type: ['number', 'null'] }
const ENCODING = oneOf(PAYLOAD_ENCODINGS)
const REASON = { type: 'string', maxLength: 4_000 }
const ACTION = oneOf(REDRIVE_ACTIONS)
const STATE = oneOf(REDRIVE_STATES)
const ORDER = oneOf(REDRIVE_ORDERS)

export const LIST_QUERY = {
  ...PAGE_QUERY,
  state: {
    type: 'string',
    description: `One or more of ${REDRIVE_STATES.join(', ')}, with commas between them; left out: all that were started`,
  },
}

export const LETTERS_QUERY = { ...PAGE_QUERY, outcome: oneOf(MEMBER_OUTCOMES) }

const CANARY = {
  type: 'object',
  properties: {
    letters: { type: 'integer', minimum: 1, maximum: MAX_CANARY, default: CANARY_DEFAULTS.letters },
    confirmPercent: {
      type: 'number',
      minimum: 0,
      maximum: 100,
      default: CANARY_DEFAULTS.confirmPercent,
      description: 'How many of them must be confirmed before the others follow, of a hundred',
    },
    waitSeconds: {
      type: 'integer',
      minimum: 1,
      maximum: MAX_WAIT_SECONDS,
      default: CANARY_DEFAULTS.waitSeconds,
      description: 'How long that is waited for; then the redrive pauses',
    },
  },
}

const STOP_RULE = {
  ...objectOf({
    percent: { type: 'number', minimum: 0, exclusiveMaximum: 100 },
    of: { type: 'integer', minimum: 1, maximum: MAX_OUTCOMES },
  }),
  type: 'object',
  description: 'Stops when more than `percent` of the last `of` outcomes were deaths',
}

const RATE = {
  type: 'number',
  minimum: MIN_RATE,
  maximum: MAX_RATE,
  description:
    'Letters a second, to each destination; fractions are allowed. Left out or null: as fast as it goes',
}

const REPAIR = {
  type: 'object',
  description: 'What is changed in every letter before it is sent; `patch` and `mapping` exclude each other',
  properties: {
    patch: {
      type: 'array',
      minItems: 1,
      maxItems: MOST_OPERATIONS,
      items: { type: 'object' },
      description: 'JSON Patch (RFC 6902)',
    },
    mapping: {
      ...textUpTo(MOST_MAPPING_BYTES),
      description: 'JSONata: the payload is its input, what it gives the new payload',
    },
    headers: {
      type: 'object',
      description: 'Of items of queues',
      properties: {
        set: { type: 'object', properties: Object.fromEntries(ITEM_HEADERS.map((name) => [name, TEXT])) },
        remove: { type: 'array', items: oneOf(ITEM_HEADERS) },
      },
    },
  },
}

/** The body of a plan. */
export const PLAN = {
  required: ['action'],
  fields: {
    filter: {
      type: 'object',
      description:
        'Which letters, as the parameters of GET /api/dlq. Exactly one of filter, signature and ids',
      properties: Object.fromEntries(
        Object.entries(FILTER_QUERY).map(([name, schema]) => [
          name,
          schema.type === 'string' && !('enum' in schema)
            ? { ...schema, ...textUpTo(MAX_FILTER_TEXT) }
            : schema,
        ]),
      ),
    },
    signature: {
      ...textUpTo(MAX_SIGNATURE),
      description: 'Letters with this error; beside a filter it narrows that',
    },
    ids: {
      type: 'array',
      minItems: 1,
      maxItems: MAX_IDS,
      items: {
        oneOf: [
          { type: 'string', pattern: '^[^/]{1,256}/.{1,4096}$', description: 'ENGINE/ROWKEY' },
          objectOf({ engine: textUpTo(MAX_ENGINE), rowKey: textUpTo(MAX_ROW_KEY) }),
        ],
      },
    },
    action: ACTION,
    queue: { ...textUpTo(512), description: 'Where move sends them; not for other actions' },
    repair: REPAIR,
    rate: orNull(RATE),
    canary: {
      oneOf: [{ type: 'integer', minimum: 1, maximum: MAX_CANARY }, CANARY, { type: 'null' }],
      description: 'Letters that go first; only for retry and move',
    },
    stopRule: orNull(STOP_RULE),
    order: {
      ...ORDER,
      default: 'key',
      description:
        'key: letters of one key in the order of their capture, different keys at once; capture: one after the other for each destination; none: as it comes',
    },
    reason: { ...REASON, description: 'Required to discard' },
  },
}

/** The body of a pause or a cancellation. */
export const WHY = { fields: { reason: REASON } }

/** The body of a change of rate. */
export const NEW_RATE = { required: ['rate'], fields: { rate: orNull(RATE) } }

const REDRIVE_FIELDS = {
  id: TEXT,
  state: STATE,
  sentence: { type: 'string', description: 'How it stands, for people' },
  action: ACTION,
  queue: TEXT_OR_NULL,
  filter: { type: ['object', 'null'], properties: FILTER_QUERY },
  ids: {
    type: ['integer', 'null'],
    description: 'How many letters were named one by one; null: it has a filter',
  },
  counts: {
    ...objectOf(integers(COUNTS)),
    description: 'planned = sent + skipped + failed + remaining; sent = confirmed + returned + unconfirmed',
  },
  numbers: {
    ...objectOf(integers(PLAN_NUMBERS)),
    description: 'What the plan found; matched is the sum of all others',
  },
  rate: NUMBER_OR_NULL,
  canary: orNull(CANARY),
  stopRule: orNull(STOP_RULE),
  order: ORDER,
  repair: { ...REPAIR, type: ['object', 'null'], properties: { ...REPAIR.properties, version: TEXT } },
  reason: TEXT_OR_NULL,
  plannedBy: TEXT,
  plannedAtUtc: TIME,
  validUntilUtc: TIME,
  isExpired: { type: 'boolean', description: 'It was not started, and cannot be any more' },
  startedBy: TEXT_OR_NULL,
  startedAtUtc: TIME_OR_NULL,
  endedAtUtc: TIME_OR_NULL,
  note: { type: ['string', 'null'], description: 'Why it is paused, was stopped or was cancelled' },
  resumed: { type: 'integer', description: 'How often it went on after a restart, or on another server' },
  isHeld: { type: 'boolean', description: 'A server is at it now' },
  rateNow: { ...NUMBER_OR_NULL, description: 'Letters a second, over the last seconds' },
  secondsLeft: { ...NUMBER_OR_NULL, description: 'At this rate' },
}

/** A redrive as lists show it. */
const REDRIVE = objectOf(REDRIVE_FIELDS)

const DESTINATION = objectOf({
  ...{ source: SOURCE_SCHEMA, name: TEXT },
  ...integers(['planned', 'sent', 'skipped', 'failed', 'remaining']),
})

const OUTCOME = oneOf(['skipped', 'failed'])

const EXCEPTION = objectOf({ outcome: OUTCOME, reason: oneOf(EXCEPTION_REASONS), letters: INTEGER })

const SAMPLE = objectOf({
  engine: TEXT,
  rowKey: TEXT,
  instanceId: TEXT,
  errorMessage: TEXT,
  queue: TEXT_OR_NULL,
  encoding: TEXT_OR_NULL,
  kind: TEXT_OR_NULL,
  reference: TEXT_OR_NULL,
  payload: { ...TEXT_OR_NULL, description: `As it would be sent, at most ${MAX_SHOWN_PAYLOAD} bytes of it` },
  payloadEncoding: orNull({ ...ENCODING, type: 'string' }),
  payloadTruncated: { type: 'boolean' },
  before: {
    type: ['object', 'null'],
    description: 'What it would be without the repair',
    properties: { payload: TEXT, payloadEncoding: ENCODING, payloadTruncated: { type: 'boolean' } },
  },
  refusal: { ...TEXT_OR_NULL, description: 'Why it would be refused' },
})

/** A redrive with everything on file about it. */
export const REDRIVE_DETAIL = objectOf({
  ...REDRIVE_FIELDS,
  destinations: { type: 'array', items: DESTINATION },
  exceptions: { type: 'array', items: EXCEPTION, description: 'How many letters were not sent, by reason' },
  sample: {
    type: 'array',
    items: SAMPLE,
    description: 'The first letters as they would be sent; empty once started',
  },
})

/** Redrives, the newest first. */
export const REDRIVES = pageOf(REDRIVE)

/** The letters of a redrive. */
export const MEMBERS = pageOf(
  objectOf({
    engine: {
      ...TEXT_OR_NULL,
      description: 'null, as the rowKey: the letter was removed when its time was over',
    },
    rowKey: TEXT_OR_NULL,
    destination: TEXT,
    outcome: oneOf(MEMBER_OUTCOMES),
    reason: TEXT_OR_NULL,
    detail: TEXT_OR_NULL,
  }),
)
