/** `GET /api/activity` and `GET /api/overview`: what happens to letters, over time and at a glance. */

import type { ApiCall } from '../../api/calls.ts'
import { INTEGER, objectOf, TEXT, TEXT_OR_NULL, TIME } from '../../api/describe.ts'
import type { Query } from '../../api/query.ts'
import { SOURCE_STATES, type SourceHealth, WELL } from '../../api/source-http.ts'
import { refuse } from '../../core/errors.ts'
import { formatMicros } from '../../core/timestamp.ts'
import { SOURCE_SCHEMA } from '../kinds.ts'
import { STATUSES } from '../letter.ts'
import { type ActivityRange, RANGES } from '../numbers/activity.ts'
import { ACTIVITY_NAMES } from '../numbers/counts.ts'
import type { Ledger } from '../numbers/ledger.ts'
import { shown, sourceOf } from './parameters.ts'

/** Asks how the sources are, by their names; those that are not told about are well. */
export type AskSources = () => Promise<ReadonlyMap<string, SourceHealth>>

/** The calls; add them with `serveApi`. */
export const activityCalls = (ledger: Ledger, sourceHealth: AskSources): readonly ApiCall[] => [
  overviewCall(ledger, sourceHealth),
  activityCall(ledger),
]

const overviewCall = (ledger: Ledger, sourceHealth: AskSources): ApiCall => ({
  method: 'GET',
  path: '/api/overview',
  role: 'viewer',
  operationId: 'letters.overview',
  tag: 'letters',
  summary:
    'The office at a glance: what is open and since when, arrivals against the median hour of the last week, what became of retries, and how the sources are',
  data: objectOf({
    asOfUtc: TIME,
    letters: objectOf(Object.fromEntries(STATUSES.map((status) => [status, INTEGER]))),
    oldestPending: {
      type: ['object', 'null'],
      properties: { engine: TEXT, rowKey: TEXT, lastFailureAtUtc: TIME },
    },
    arrivals: objectOf({ lastHour: INTEGER, usualPerHour: { type: ['number', 'null'] } }),
    returnedLastDay: INTEGER,
    unconfirmed: INTEGER,
    sources: {
      type: 'array',
      items: objectOf({
        source: SOURCE_SCHEMA,
        pending: INTEGER,
        health: { type: 'string', enum: [...SOURCE_STATES] },
        note: TEXT_OR_NULL,
      }),
    },
  }),
  answer: async () => {
    const [overview, healths] = await Promise.all([ledger.overview(), sourceHealth()])
    const { asOf, oldestPending, sources, ...numbers } = overview
    const data = {
      asOfUtc: formatMicros(asOf),
      letters: numbers.letters,
      oldestPending:
        oldestPending === null
          ? null
          : {
              engine: oldestPending.engine,
              rowKey: oldestPending.rowKey,
              lastFailureAtUtc: formatMicros(oldestPending.lastFailureAt),
            },
      arrivals: numbers.arrivals,
      returnedLastDay: numbers.returnedLastDay,
      unconfirmed: numbers.unconfirmed,
      sources: sources.map(({ source, pending }) => {
        const { state, note } = healths.get(source) ?? WELL
        return { source, pending, health: state, note }
      }),
    }
    return { status: 200, data }
  },
})

const NAMES = Object.keys(RANGES)

const QUERY = {
  range: { type: 'string', enum: NAMES, default: '24h' },
  source: SOURCE_SCHEMA,
  engine: TEXT,
  originalQueue: TEXT,
  signature: TEXT,
}

const NUMBERS = { type: 'array', items: INTEGER }

const activityCall = (ledger: Ledger): ApiCall => ({
  method: 'GET',
  path: '/api/activity',
  role: 'viewer',
  operationId: 'letters.activity',
  tag: 'letters',
  summary:
    'What happened to letters over time, in numbers: bucket i of each series starts at fromUtc + i·bucketSeconds, the last lasts still; with a filter a bucket is an hour at least',
  query: QUERY,
  data: objectOf({
    range: { type: 'string', enum: NAMES },
    bucketSeconds: INTEGER,
    fromUtc: TIME,
    toUtc: TIME,
    series: objectOf(Object.fromEntries(ACTIVITY_NAMES.map((name) => [name, NUMBERS]))),
  }),
  answer: async ({ query }) => {
    const { from, to, ...activity } = await ledger.activity(rangeOf(query), {
      source: sourceOf(query),
      engine: query.get('engine'),
      originalQueue: query.get('originalQueue'),
      signature: query.get('signature'),
    })
    const data = {
      range: activity.range,
      bucketSeconds: activity.bucketSeconds,
      fromUtc: formatMicros(from),
      toUtc: formatMicros(to),
      series: activity.series,
    }
    return { status: 200, data }
  },
})

function rangeOf(query: Query): ActivityRange {
  const text = query.get('range') ?? QUERY.range.default
  // The names of an object's keys are what it says they are.
  const range = (NAMES as ActivityRange[]).find((known) => known === text)
  if (range !== undefined) return range
  throw refuse('range', `'${shown(text)}' is none of ${NAMES.join(', ')}`)
}
