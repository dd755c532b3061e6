/** Calls of numbers: `/api/counts`, `/api/signatures`, `/api/overview` and `/api/activity`. */
import type { ApiCall } from '../../api/calls.ts'
import { limitOf, type Query } from '../../api/query.ts'
import { PAGE_QUERY, pageOf } from '../../api/shapes.ts'
import { type SourceHealth, WELL } from '../../api/source-http.ts'
import { viewOf } from '../../api/view.ts'
import type { LetterNumbers } from '../numbers/letter-numbers.ts'
import {
  ACTIVITY,
  ACTIVITY_QUERY,
  ACTIVITY_RANGES,
  COUNT_KEYS,
  COUNTS,
  COUNTS_QUERY,
  DEFAULT_RANGE,
  GROUP,
  GROUP_DETAIL,
  GROUPS_QUERY,
  OLDEST,
  OVERVIEW,
} from '../numbers/shapes.ts'
import { sourceOf, statusOf, wordOf } from './parameters.ts'

/** By name of the source; those left out are well. */
export type AskSources = () => Promise<ReadonlyMap<string, SourceHealth>>

export const numberCalls = (
  numbers: LetterNumbers,
  sourceHealth: AskSources = async () => new Map(),
): readonly ApiCall[] => [
  countsCall(numbers),
  groupsCall(numbers),
  groupCall(numbers),
  overviewCall(numbers, sourceHealth),
  activityCall(numbers),
]

const countsCall = (numbers: LetterNumbers): ApiCall => ({
  method: 'GET',
  path: '/api/counts',
  role: 'viewer',
  operationId: 'letters.counts',
  tag: 'letters',
  summary: 'Exact counts of letters; keys that are not counted by are left out, and so are counts of zero',
  query: COUNTS_QUERY,
  data: COUNTS,
  answer: async ({ query }) => {
    const filter = { ...placeOf(query), status: statusOf(query), signature: query.get('signature') ?? null }
    const by = query
      .get('by')
      ?.split(',', COUNT_KEYS.length + 1)
      .map((text) => wordOf('by', text, COUNT_KEYS))
    return { status: 200, data: await numbers.counts(filter, by) }
  },
})

const groupOnWire = viewOf(GROUP)
const groupDetail = viewOf(GROUP_DETAIL)

const groupsCall = (numbers: LetterNumbers): ApiCall => ({
  method: 'GET',
  path: '/api/signatures',
  role: 'viewer',
  operationId: 'signatures.list',
  tag: 'letters',
  summary: 'Groups of letters with the same error, those with the most pending letters first',
  query: { ...GROUPS_QUERY, ...PAGE_QUERY },
  data: pageOf(GROUP),
  answer: async ({ query }) => {
    const { items, continuationToken } = await numbers.signatures(placeOf(query), {
      limit: limitOf(query),
      continuationToken: query.get('continuationToken') ?? null,
    })
    return { status: 200, data: { items: items.map(groupOnWire), continuationToken } }
  },
})

const groupCall = (numbers: LetterNumbers): ApiCall => ({
  method: 'GET',
  path: '/api/signatures/:signature',
  role: 'viewer',
  operationId: 'signatures.get',
  tag: 'letters',
  summary: 'One group of letters with the same error, and what became of its retries',
  data: GROUP_DETAIL,
  answer: async ({ params: { signature = '' } }) => ({
    status: 200,
    data: groupDetail(await numbers.signature(signature)),
  }),
})

const overviewOnWire = viewOf(OVERVIEW)
const oldestOnWire = viewOf(OLDEST)

const overviewCall = (numbers: LetterNumbers, sourceHealth: AskSources): ApiCall => ({
  method: 'GET',
  path: '/api/overview',
  role: 'viewer',
  operationId: 'letters.overview',
  tag: 'letters',
  summary:
    'The office at a glance: what is open and since when, arrivals against the median hour of the last week, what became of retries, and how the sources are',
  data: OVERVIEW,
  answer: async () => {
    const [overview, healths] = await Promise.all([numbers.overview(), sourceHealth()])
    const { oldestPending } = overview
    const data = overviewOnWire({
      ...overview,
      oldestPending: oldestPending === null ? null : oldestOnWire(oldestPending),
      sources: overview.sources.map(({ source, pending }) => {
        const { state, note } = healths.get(source) ?? WELL
        return { source, pending, health: state, note }
      }),
    })
    return { status: 200, data }
  },
})

const activityOnWire = viewOf(ACTIVITY)

const activityCall = (numbers: LetterNumbers): ApiCall => ({
  method: 'GET',
  path: '/api/activity',
  role: 'viewer',
  operationId: 'letters.activity',
  tag: 'letters',
  summary:
    'What happened to letters over time, in numbers: bucket i of each series starts at fromUtc + i·bucketSeconds, the last lasts still; with a filter a bucket is an hour at least',
  query: ACTIVITY_QUERY,
  data: ACTIVITY,
  answer: async ({ query }) => {
    const range = wordOf('range', query.get('range') ?? DEFAULT_RANGE, ACTIVITY_RANGES)
    const filter = { ...placeOf(query), signature: query.get('signature') ?? null }
    return { status: 200, data: activityOnWire(await numbers.activity(range, filter)) }
  },
})

/** null: not asked for. */
const placeOf = (query: Query) => ({
  source: sourceOf(query),
  engine: query.get('engine') ?? null,
  originalQueue: query.get('originalQueue') ?? null,
})
