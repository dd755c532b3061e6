/** `GET /api/signatures` and `GET /api/signatures/{signature}`: letters grouped by their error. */

import type { ApiCall } from '../../api/calls.ts'
import { INTEGER, objectOf, PAGE_QUERY, pageOf, TEXT, TIME } from '../../api/describe.ts'
import { limitOf } from '../../api/query.ts'
import { formatMicros } from '../../core/timestamp.ts'
import { SOURCE_SCHEMA } from '../kinds.ts'
import type { Ledger } from '../numbers/ledger.ts'
import type { SignatureGroup } from '../numbers/signatures.ts'
import { sourceOf } from './parameters.ts'

const QUERY = { source: SOURCE_SCHEMA, engine: TEXT, originalQueue: TEXT, ...PAGE_QUERY }

const TEXTS = { type: 'array', items: TEXT }

const GROUP_FIELDS = {
  signature: TEXT,
  version: INTEGER,
  errorClass: TEXT,
  title: TEXT,
  open: INTEGER,
  total: INTEGER,
  firstSeenAtUtc: TIME,
  lastSeenAtUtc: TIME,
  sources: TEXTS,
  engines: TEXTS,
  originalQueues: TEXTS,
  sample: {
    type: ['object', 'null'],
    properties: { engine: TEXT, rowKey: TEXT, errorMessage: TEXT },
  },
  trend: {
    type: 'array',
    items: INTEGER,
    description: 'Letters that arrived in each of the last 24 hours, the oldest first',
  },
}

const GROUP = objectOf(GROUP_FIELDS)

const GROUP_DETAIL = objectOf({
  ...GROUP_FIELDS,
  outcomes: {
    ...objectOf({ retried: INTEGER, confirmed: INTEGER, returned: INTEGER, unconfirmed: INTEGER }),
    description:
      'How many were ever sent back, and how many of these were confirmed, died again, and are neither yet',
  },
})

/** The calls; add them with `serveApi`. */
export const signatureCalls = (ledger: Ledger): readonly ApiCall[] => [
  {
    method: 'GET',
    path: '/api/signatures',
    role: 'viewer',
    operationId: 'signatures.list',
    tag: 'letters',
    summary: 'Groups of letters with the same error, those with the most pending letters first',
    query: QUERY,
    data: pageOf(GROUP),
    answer: async ({ query }) => {
      const filter = {
        source: sourceOf(query),
        engine: query.get('engine') ?? null,
        originalQueue: query.get('originalQueue') ?? null,
      }
      const { items, continuationToken } = await ledger.signatures(filter, {
        limit: limitOf(query),
        continuationToken: query.get('continuationToken') ?? null,
      })
      return { status: 200, data: { items: items.map(groupOnWire), continuationToken } }
    },
  },
  {
    method: 'GET',
    path: '/api/signatures/:signature',
    role: 'viewer',
    operationId: 'signatures.get',
    tag: 'letters',
    summary: 'One group of letters with the same error, and what became of its retries',
    data: GROUP_DETAIL,
    answer: async ({ params: { signature = '' } }) => {
      const { outcomes, ...group } = await ledger.signature(signature)
      return { status: 200, data: { ...groupOnWire(group), outcomes } }
    },
  },
]

const groupOnWire = ({ firstSeenAt, lastSeenAt, ...group }: SignatureGroup) => ({
  signature: group.signature,
  version: group.version,
  errorClass: group.errorClass,
  title: group.title,
  open: group.open,
  total: group.total,
  firstSeenAtUtc: formatMicros(firstSeenAt),
  lastSeenAtUtc: formatMicros(lastSeenAt),
  sources: group.sources,
  engines: group.engines,
  originalQueues: group.originalQueues,
  sample: group.sample,
  trend: group.trend,
})
