/** Numbers of letters on the wire: counts, activity, overview, groups of the same error. */
import Type from 'typebox'
import {
  type Asked,
  each,
  INTEGER,
  NUMBER_OR_NULL,
  oneOf,
  orNull,
  type Shape,
  SOURCE_STATES,
  TEXT,
  TEXT_OR_NULL,
  TIME,
} from '../../api/shapes.ts'
import { KEY, LETTER_STATUS, SOURCE, STATUSES } from '../shapes.ts'

/** In the order in which counts are sorted. */
export const COUNT_KEYS = ['source', 'engine', 'originalQueue', 'signature', 'status'] as const
export type CountKey = (typeof COUNT_KEYS)[number]

const PLACE_QUERY = { source: SOURCE, engine: TEXT, originalQueue: TEXT }

export interface CountsQuery extends Asked<typeof COUNTS_QUERY> {}
export const COUNTS_QUERY = {
  ...PLACE_QUERY,
  status: LETTER_STATUS,
  signature: TEXT,
  by: Type.String({
    description: `What to count by: some of ${COUNT_KEYS.join(', ')}, separated by commas. Left out: all.`,
  }),
}

const BY_STATUS = Type.Object(each(STATUSES, INTEGER))

/** Letters with the same keys; keys not counted by are left out. */
export interface LetterCount extends Shape<typeof COUNT> {}
const COUNT = Type.Object({
  source: Type.Optional(SOURCE),
  engine: Type.Optional(TEXT),
  originalQueue: Type.Optional(TEXT_OR_NULL),
  status: Type.Optional(LETTER_STATUS),
  signature: Type.Optional(TEXT),
  count: INTEGER,
})

export interface LetterCounts extends Shape<typeof COUNTS> {}
export const COUNTS = Type.Object({
  /** No count is zero. */
  items: Type.Array(COUNT),
  /** All that match, whatever they are counted by. */
  totals: BY_STATUS,
})

export const ACTIVITY_NAMES = ['arrived', 'retried', 'confirmed', 'returned', 'discarded', 'expired'] as const
export type ActivityName = (typeof ACTIVITY_NAMES)[number]

export const ACTIVITY_RANGES = ['1h', '24h', '7d', '30d'] as const
export type ActivityRange = (typeof ACTIVITY_RANGES)[number]
export const DEFAULT_RANGE: ActivityRange = '24h'

export interface ActivityRequest extends Asked<typeof ACTIVITY_QUERY> {}
export const ACTIVITY_QUERY = {
  /** Left out: 24h. */
  range: oneOf(ACTIVITY_RANGES, { default: DEFAULT_RANGE }),
  ...PLACE_QUERY,
  signature: TEXT,
}

/** What happened to letters over time. Bucket i starts at `fromUtc` + i · `bucketSeconds`; the last lasts still. */
export interface LetterActivity extends Shape<typeof ACTIVITY> {}
export const ACTIVITY = Type.Object({
  range: oneOf(ACTIVITY_RANGES),
  bucketSeconds: INTEGER,
  fromUtc: TIME,
  toUtc: TIME,
  series: Type.Object(each(ACTIVITY_NAMES, Type.Array(INTEGER))),
})

export const OLDEST = Type.Object({ ...KEY.properties, lastFailureAtUtc: TIME })

/** The office at a glance. */
export interface OfficeOverview extends Shape<typeof OVERVIEW> {}
export const OVERVIEW = Type.Object({
  asOfUtc: TIME,
  letters: BY_STATUS,
  /** The pending letter whose last failure is the longest ago. */
  oldestPending: orNull(OLDEST),
  arrivals: Type.Object({
    lastHour: INTEGER,
    /** The median hour of the last week; null before there was a day to compare with. */
    usualPerHour: NUMBER_OR_NULL,
  }),
  /** Letters that died again after a retry, in the last 24 hours. */
  returnedLastDay: INTEGER,
  /** Letters that were sent back and of which nothing was heard yet. */
  unconfirmed: INTEGER,
  sources: Type.Array(
    Type.Object({
      source: SOURCE,
      pending: INTEGER,
      health: oneOf(SOURCE_STATES),
      note: TEXT_OR_NULL,
    }),
  ),
})

export interface GroupsQuery extends Asked<typeof GROUPS_QUERY> {}
export const GROUPS_QUERY = PLACE_QUERY

/** A group of letters with the same error. */
export interface SignatureGroup extends Shape<typeof GROUP> {}
export const GROUP = Type.Object({
  signature: TEXT,
  /** Of the algorithm that made the signature. */
  version: INTEGER,
  errorClass: TEXT,
  /** What the errors have in common, for people. */
  title: TEXT,
  /** Pending letters. */
  open: INTEGER,
  /** Letters of any status. */
  total: INTEGER,
  firstSeenAtUtc: TIME,
  lastSeenAtUtc: TIME,
  sources: Type.Array(TEXT),
  engines: Type.Array(TEXT),
  originalQueues: Type.Array(TEXT),
  /** The newest pending letter, else the newest. */
  sample: orNull(Type.Object({ ...KEY.properties, errorMessage: TEXT })),
  /** Letters that arrived in each of the last 24 hours, the oldest first. */
  trend: Type.Array(INTEGER, {
    description: 'Letters that arrived in each of the last 24 hours, the oldest first',
  }),
})

/** A group with what became of its retries. */
export interface SignatureDetail extends Shape<typeof GROUP_DETAIL> {}
export const GROUP_DETAIL = Type.Object({
  ...GROUP.properties,
  /** All that were ever sent back; how many of these were confirmed, died again, and are neither yet. */
  outcomes: Type.Object(each(['retried', 'confirmed', 'returned', 'unconfirmed'], INTEGER), {
    description:
      'How many were ever sent back, and how many of these were confirmed, died again, and are neither yet',
  }),
})
