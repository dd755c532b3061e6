/** Redrives on the wire: requests, lists, details and letters. */
import Type from 'typebox'
import {
  BOOLEAN,
  ENCODING,
  ENCODING_OR_NULL,
  each,
  either,
  INTEGER,
  NUMBER_OR_NULL,
  oneOf,
  orNull,
  type Shape,
  TEXT,
  TEXT_OR_NULL,
  TIME,
  TIME_OR_NULL,
  textUpTo,
} from '../api/shapes.ts'
import type { PatchOperation } from '../core/json/patch.ts'
import { FILTER_QUERY, ITEM_HEADERS, KEY, SOURCE } from '../letters/shapes.ts'
import { progressOf } from '../work/shapes.ts'

export const REDRIVE_STATES = [
  'planning',
  'planned',
  'canary',
  'running',
  'paused',
  'done',
  'stopped',
  'cancelled',
] as const
export type RedriveState = (typeof REDRIVE_STATES)[number]

/** `move` sends letters to another queue than the one they came from. */
export const REDRIVE_ACTIONS = ['retry', 'move', 'discard', 'restore'] as const
export type RedriveAction = (typeof REDRIVE_ACTIONS)[number]

/**
 * `key`: letters of one key go out in capture order, none before one that stays behind; different keys at once. `capture`: one after the
 * other to each destination. `none`: in any order.
 */
export const REDRIVE_ORDERS = ['key', 'capture', 'none'] as const
export type RedriveOrder = (typeof REDRIVE_ORDERS)[number]

/** Why planned letters were not sent. */
const EXCEPTION_REASONS = [
  'changed',
  'leased',
  'gone',
  'in_other_redrive',
  'order_blocked',
  'repair_refused',
  'send_refused',
] as const
export type ExceptionReason = (typeof EXCEPTION_REASONS)[number]

/** `superseded`: it was sent, and something else was done to it since. */
export const MEMBER_OUTCOMES = [
  'remaining',
  'skipped',
  'failed',
  'confirmed',
  'returned',
  'unconfirmed',
  'superseded',
] as const
export type MemberOutcome = (typeof MEMBER_OUTCOMES)[number]

const ACTION = oneOf(REDRIVE_ACTIONS)

/** At least about one letter a day, so that the time until the next letter can be told. */
export const RATE = Type.Number({
  minimum: 0.00001,
  maximum: 1_000_000,
  description:
    'Letters a second, to each destination; fractions are allowed. Left out or null: as fast as it goes',
})

export const CANARY_LETTERS = Type.Integer({ minimum: 1, maximum: 10_000, default: 10 })

/** A few letters that go first. */
export interface Canary extends Shape<typeof CANARY> {}
export const CANARY = Type.Object({
  letters: CANARY_LETTERS,
  /** Percentage that must be confirmed before the others follow. */
  confirmPercent: Type.Number({
    minimum: 0,
    maximum: 100,
    default: 100,
    description: 'How many of them must be confirmed before the others follow, of a hundred',
  }),
  /** How long that is waited for; then the redrive pauses. A day at most. */
  waitSeconds: Type.Integer({
    minimum: 1,
    maximum: 86_400,
    default: 600,
    description: 'How long that is waited for; then the redrive pauses',
  }),
})

/** Stops a redrive when more than `percent` of the last `of` outcomes were deaths. */
export interface StopRule extends Shape<typeof STOP_RULE> {}
export const STOP_RULE = Type.Object(
  {
    percent: Type.Number({ minimum: 0, exclusiveMaximum: 100 }),
    of: Type.Integer({ minimum: 1, maximum: 10_000 }),
  },
  { description: 'Stops when more than `percent` of the last `of` outcomes were deaths' },
)

export const MOST_MAPPING_BYTES = 16_384
export const MOST_OPERATIONS = 100

const REPAIRS = 'What is changed in every letter before it is sent; `patch` and `mapping` exclude each other'

/** Changes to every letter before it is sent; `patch` and `mapping` exclude each other. */
export interface RedriveRepair extends Shape<typeof REPAIR> {}
export const REPAIR = Type.Object(
  {
    patch: Type.Optional(
      Type.Array(Type.Unsafe<PatchOperation>({ type: 'object' }), {
        ...{ minItems: 1, maxItems: MOST_OPERATIONS },
        description: 'JSON Patch (RFC 6902)',
      }),
    ),
    /** JSONata from the old payload to the new one. */
    mapping: Type.Optional(
      textUpTo(MOST_MAPPING_BYTES, {
        description: 'JSONata: the payload is its input, what it gives the new payload',
      }),
    ),
    headers: Type.Optional(
      Type.Object(
        {
          set: Type.Optional(Type.Partial(Type.Object(each(ITEM_HEADERS, TEXT)))),
          remove: Type.Optional(Type.Array(oneOf(ITEM_HEADERS))),
        },
        { description: 'Of items of queues' },
      ),
    ),
  },
  { description: REPAIRS },
)

export const MAX_FILTER_TEXT = 4_096
export const MAX_IDS = 10_000
const LETTER_NAME = Type.Object({ engine: textUpTo(256), rowKey: textUpTo(4_096) })

/** As the parameters of a list, with a limit for texts. */
const FILTER = Object.fromEntries(
  Object.entries(FILTER_QUERY).map(([name, schema]) => {
    const isText = 'type' in schema && schema.type === 'string' && !('enum' in schema)
    return [name, isText ? { ...schema, minLength: 1, maxLength: MAX_FILTER_TEXT } : schema]
  }),
  // The cast holds: the same fields.
) as typeof FILTER_QUERY

/** Give exactly one of `filter`, `signature` and `ids`; a signature may also narrow a filter. */
export interface PlanBody extends Shape<typeof PLAN> {}
export const PLAN = Type.Object({
  /** `{}`: all letters in the status that the action needs. */
  filter: Type.Optional(
    Type.Partial(Type.Object(FILTER), {
      description:
        'Which letters, as the parameters of GET /api/dlq. Exactly one of filter, signature and ids',
    }),
  ),
  signature: Type.Optional(
    textUpTo(256, { description: 'Letters with this error; beside a filter it narrows that' }),
  ),
  /** At most 10,000; as `ENGINE/ROWKEY`, or letters of a list. */
  ids: Type.Optional(
    Type.Array(
      either(Type.String({ pattern: '^[^/]{1,256}/.{1,4096}$', description: 'ENGINE/ROWKEY' }), LETTER_NAME),
      { minItems: 1, maxItems: MAX_IDS },
    ),
  ),
  action: ACTION,
  /** Required for `move`, and only for it. */
  queue: Type.Optional(textUpTo(512, { description: 'Where move sends them; not for other actions' })),
  repair: Type.Optional(REPAIR),
  /** Letters a second, to each destination; null: as fast as it goes. */
  rate: Type.Optional(orNull(RATE)),
  /** A number of letters, or more about them. Default: 10 letters, all confirmed within ten minutes. */
  canary: Type.Optional(
    Type.Unsafe<number | Partial<Canary> | null>({
      oneOf: [Type.Integer({ minimum: 1, maximum: 10_000 }), Type.Partial(CANARY), { type: 'null' }],
      description: 'Letters that go first; only for retry and move',
    }),
  ),
  stopRule: Type.Optional(orNull(STOP_RULE)),
  order: Type.Optional(
    oneOf(REDRIVE_ORDERS, {
      default: 'key',
      description:
        'key: letters of one key in the order of their capture, different keys at once; capture: one after the other for each destination; none: as it comes',
    }),
  ),
  reason: Type.Optional(Type.String({ maxLength: 4_000, description: 'Required to discard' })),
})

export const NEW_RATE = Type.Object({ rate: orNull(RATE) })

/** planned = sent + skipped + failed + remaining; sent = confirmed + returned + unconfirmed. At every moment. */
export interface RedriveCounts extends Shape<typeof COUNTS> {}
export const COUNTS = Type.Object(
  {
    planned: INTEGER,
    /** The act was done: sent, discarded or restored. */
    sent: INTEGER,
    /** Left alone: changed since the plan, or not allowed to go out. */
    skipped: INTEGER,
    /** Tried, and refused. */
    failed: INTEGER,
    remaining: INTEGER,
    confirmed: INTEGER,
    /** Died again. */
    returned: INTEGER,
    unconfirmed: INTEGER,
  },
  { description: 'planned = sent + skipped + failed + remaining; sent = confirmed + returned + unconfirmed' },
)

/** What a plan found. `matched` is the sum of all others. */
export interface PlanNumbers extends Shape<typeof PLAN_NUMBERS> {}
export const PLAN_NUMBERS = Type.Object(
  {
    matched: INTEGER,
    /** In the plan. */
    eligible: INTEGER,
    /** Somebody works on them: sent back and not heard of, leased from their dead queue, or in another redrive. */
    inFlight: INTEGER,
    /** Nowhere to send them. */
    noDestination: INTEGER,
    /** An earlier letter of their key is pending and not in the plan. */
    orderBlocked: INTEGER,
    /** Named more than once. */
    duplicate: INTEGER,
    /** Unknown, not in the status that the action needs, or the repair does not apply. */
    invalid: INTEGER,
  },
  { description: 'What the plan found; matched is the sum of all others' },
)

/** A redrive in a list. */
export interface RedriveItem extends Shape<typeof REDRIVE> {}
export const REDRIVE = Type.Object({
  id: TEXT,
  state: oneOf(REDRIVE_STATES),
  sentence: Type.String({ description: 'How it stands, for people' }),
  action: ACTION,
  queue: TEXT_OR_NULL,
  /** null: letters were named one by one, and `ids` says how many. */
  filter: orNull(Type.Partial(Type.Object(FILTER_QUERY))),
  ids: orNull(INTEGER, { description: 'How many letters were named one by one; null: it has a filter' }),
  counts: COUNTS,
  numbers: PLAN_NUMBERS,
  rate: NUMBER_OR_NULL,
  canary: orNull(CANARY),
  stopRule: orNull(STOP_RULE),
  order: oneOf(REDRIVE_ORDERS),
  repair: orNull(Type.Object({ ...REPAIR.properties, version: TEXT }, { description: REPAIRS })),
  reason: TEXT_OR_NULL,
  plannedBy: TEXT,
  plannedAtUtc: TIME,
  /** Until then the plan can be started. */
  validUntilUtc: TIME,
  isExpired: Type.Boolean({ description: 'It was not started, and cannot be any more' }),
  startedBy: TEXT_OR_NULL,
  startedAtUtc: TIME_OR_NULL,
  endedAtUtc: TIME_OR_NULL,
  note: orNull(TEXT, { description: 'Why it is paused, was stopped or was cancelled' }),
  ...progressOf('Letters'),
})

const { id, state, sentence, action, counts, rateNow, secondsLeft, note, resumed } = REDRIVE.properties

/** Told again and again to those who watch. */
export const NEWS = Type.Object({
  ...{ id, state, sentence, action, counts, rateNow, secondsLeft, note, resumed },
})

/** Letters of a redrive with the same destination. */
export interface RedriveDestination extends Shape<typeof DESTINATION> {}
export const DESTINATION = Type.Object({
  source: SOURCE,
  /** Queue, outbox, consumer or topic; '' without one. */
  name: TEXT,
  ...each(['planned', 'sent', 'skipped', 'failed', 'remaining'], INTEGER),
})

const EXCEPTION = Type.Object({
  outcome: oneOf(['skipped', 'failed']),
  reason: oneOf(EXCEPTION_REASONS),
  letters: INTEGER,
})

/** Bytes of a payload shown in a sample. */
export const MAX_SHOWN_PAYLOAD = 65_536

/** A planned letter as it would be sent, with at most 64 KiB of its payload. `bytesOf` makes bytes of its texts. */
export interface RedriveSample extends Shape<typeof SAMPLE> {}
export const SAMPLE = Type.Object({
  ...KEY.properties,
  instanceId: TEXT,
  errorMessage: TEXT,
  /** null, as the five after it: it does not leave the office, or cannot. */
  queue: TEXT_OR_NULL,
  encoding: TEXT_OR_NULL,
  kind: TEXT_OR_NULL,
  reference: TEXT_OR_NULL,
  payload: orNull(TEXT, { description: `As it would be sent, at most ${MAX_SHOWN_PAYLOAD} bytes of it` }),
  payloadEncoding: ENCODING_OR_NULL,
  payloadTruncated: BOOLEAN,
  /** Without the repair; null when there is none. */
  before: orNull(Type.Object({ payload: TEXT, payloadEncoding: ENCODING, payloadTruncated: BOOLEAN }), {
    description: 'What it would be without the repair',
  }),
  /** Why it would be refused. */
  refusal: orNull(TEXT, { description: 'Why it would be refused' }),
})

/** A redrive with everything on file about it. */
export interface RedriveDetail extends Shape<typeof REDRIVE_DETAIL> {}
export const REDRIVE_DETAIL = Type.Object({
  ...REDRIVE.properties,
  destinations: Type.Array(DESTINATION),
  exceptions: Type.Array(EXCEPTION, { description: 'How many letters were not sent, by reason' }),
  /** Empty once started. */
  sample: Type.Array(SAMPLE, {
    description: 'The first letters as they would be sent; empty once started',
  }),
})

/** A letter of a redrive. */
export interface RedriveLetter extends Shape<typeof MEMBER> {}
export const MEMBER = Type.Object({
  /** null, as `rowKey`: retention removed the letter. */
  engine: orNull(TEXT, {
    description: 'null, as the rowKey: the letter was removed when its time was over',
  }),
  rowKey: TEXT_OR_NULL,
  destination: TEXT,
  outcome: oneOf(MEMBER_OUTCOMES),
  /** Why it was not sent. */
  reason: TEXT_OR_NULL,
  detail: TEXT_OR_NULL,
})
