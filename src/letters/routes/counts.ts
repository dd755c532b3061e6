/** `GET /api/counts`: exact counts of letters. */

import type { ApiCall } from '../../api/calls.ts'
import { INTEGER, objectOf, TEXT, TEXT_OR_NULL } from '../../api/describe.ts'
import type { Query } from '../../api/query.ts'
import { refuse } from '../../core/errors.ts'
import { SOURCE_SCHEMA } from '../kinds.ts'
import { STATUSES } from '../letter.ts'
import type { Ledger } from '../numbers/ledger.ts'
import { COUNT_KEYS, type CountKey } from '../numbers/summary.ts'
import { STATUS, sourceOf, statusOf } from './parameters.ts'

const ITEM_KEYS: Readonly<Record<CountKey, object>> = {
  source: SOURCE_SCHEMA,
  engine: TEXT,
  originalQueue: TEXT_OR_NULL,
  status: STATUS,
  signature: TEXT,
}

const QUERY = {
  source: SOURCE_SCHEMA,
  engine: TEXT,
  originalQueue: TEXT,
  status: STATUS,
  signature: TEXT,
  by: {
    type: 'string',
    description: `What to count by: some of ${COUNT_KEYS.join(', ')}, separated by commas. Left out: all.`,
  },
}

/** The calls; add them with `serveApi`. */
export const countCalls = (ledger: Ledger): readonly ApiCall[] => [
  {
    method: 'GET',
    path: '/api/counts',
    role: 'viewer',
    operationId: 'letters.counts',
    tag: 'letters',
    summary: 'Exact counts of letters; keys that are not counted by are left out, and so are counts of zero',
    query: QUERY,
    data: objectOf({
      items: {
        type: 'array',
        items: { type: 'object', required: ['count'], properties: { ...ITEM_KEYS, count: INTEGER } },
      },
      totals: objectOf(Object.fromEntries(STATUSES.map((status) => [status, INTEGER]))),
    }),
    answer: async ({ query }) => {
      const filter = {
        source: sourceOf(query),
        engine: query.get('engine') ?? null,
        originalQueue: query.get('originalQueue') ?? null,
        status: statusOf(query),
        signature: query.get('signature') ?? null,
      }
      return { status: 200, data: await ledger.counts(filter, keysOf(query)) }
    },
  },
]

function keysOf(query: Query): readonly CountKey[] | undefined {
  return query
    .get('by')
    ?.split(',', COUNT_KEYS.length + 1)
    .map((text) => {
      const key = COUNT_KEYS.find((known) => known === text)
      if (key !== undefined) return key
      throw refuse('by', `'${text.slice(0, 64).toWellFormed()}' is none of ${COUNT_KEYS.join(', ')}`)
    })
}
