/** HTTP calls of history: lists and details for readers, records for workers in any language. */
import { type ApiCall, type ApiRequest, onceKeyOf } from '../api/calls.ts'
import { given, type JsonBody, requiredText } from '../api/json-body.ts'
import { limitOf, periodOf } from '../api/query.ts'
import { PAGE_QUERY, pageOf } from '../api/shapes.ts'
import { viewOf } from '../api/view.ts'
import { showBytes, storable } from '../core/content.ts'
import { failure, refuse } from '../core/errors.ts'
import { JsonText } from '../core/json/text.ts'
import type { HistoryDetail } from './entry.ts'
import type { History } from './history.ts'
import type { RunReport } from './intake.ts'
import { ENTRY, ENTRY_DETAIL, HISTORY_QUERY, HISTORY_STATUSES, type HistoryStatus, RECORD } from './shapes.ts'

const MAX_ERROR_BYTES = 1_048_576

export const historyCalls = (history: History): readonly ApiCall[] => [
  listCall(history),
  getCall(history),
  recordCall(history),
]

const listCall = (history: History): ApiCall => ({
  method: 'GET',
  path: '/api/history',
  role: 'viewer',
  operationId: 'history.list',
  tag: 'history',
  summary: 'Operations of engines and acts on letters, the newest first',
  query: { ...HISTORY_QUERY, ...PAGE_QUERY },
  data: pageOf(ENTRY),
  answer: async ({ query }) => {
    const status = query.get('status')
    const filter = {
      engine: query.get('engine') ?? null,
      instanceId: query.get('instanceId') ?? null,
      status: status === undefined ? null : statusNamed(status),
      operation: query.get('operation') ?? null,
      correlationId: query.get('correlationId') ?? null,
      ...periodOf(query),
    }
    const { items, continuationToken } = await history.list(filter, {
      limit: limitOf(query),
      continuationToken: query.get('continuationToken') ?? null,
    })
    return { status: 200, data: { items: items.map(entryOnWire), continuationToken } }
  },
})

const getCall = (history: History): ApiCall => ({
  method: 'GET',
  path: '/api/history/:engine/:rowKey',
  role: 'viewer',
  operationId: 'history.get',
  tag: 'history',
  summary: 'One entry with its input and output',
  data: ENTRY_DETAIL,
  answer: async ({ params: { engine = '', rowKey = '' } }) => ({
    status: 200,
    data: detailOnWire(await history.get(engine, rowKey)),
  }),
})

const recordCall = (history: History): ApiCall => ({
  method: 'POST',
  path: '/api/history',
  role: 'operator',
  operationId: 'history.record',
  tag: 'history',
  summary: 'Puts an operation on record; a known sourceId answers 200 with the entry that there is',
  body: RECORD,
  data: ENTRY,
  statuses: [200, 201],
  idempotent: true,
  answer: async (request) => {
    const { status, body } = await history.recordOnce(
      readReport(request),
      onceKeyOf(request),
      ({ entry, created }) => ({ status: created ? 201 : 200, body: entryOnWire(entry) }),
    )
    return { status, data: body }
  },
})

function statusNamed(name: string): HistoryStatus {
  const status = HISTORY_STATUSES.find((known) => known === name)
  if (status === undefined) {
    throw failure('status_unknown', { status: name.slice(0, 64), known: HISTORY_STATUSES.join(', ') })
  }
  return status
}

function readReport({ body, caller, correlationId }: ApiRequest): RunReport {
  const { text, integer } = given(RECORD, body.fields)
  const error = body.fields.error ?? null
  if (error !== null && typeof error !== 'string') throw refuse('error', 'give a text')
  const members = JsonText.of(body.text)
  return {
    engine: text('engine'),
    operation: text('operation'),
    status: statusNamed(requiredText(body.fields, 'status', { max: 64 })),
    durationMs: integer('durationMs'),
    instanceId: text('instanceId'),
    correlationId: text('correlationId') ?? correlationId,
    sourceId: text('sourceId'),
    actor: caller.name,
    input: valueBytes(body, members, 'input'),
    output: valueBytes(body, members, 'output'),
    error: error === null ? null : storable(error, MAX_ERROR_BYTES),
  }
}

/** Texts as they are, other values as written, which keeps digits of large numbers. */
function valueBytes({ fields }: JsonBody, members: JsonText, name: 'input' | 'output'): Uint8Array | null {
  const value = fields[name] ?? null
  if (value === null) return null
  return Buffer.from(typeof value === 'string' ? value : (members.at(name)?.written ?? ''))
}

const entryOnWire = viewOf(ENTRY)
const entryDetail = viewOf(ENTRY_DETAIL)

function detailOnWire(detail: HistoryDetail) {
  const [input, output] = [detail.input, detail.output].map((bytes) => bytes && showBytes(bytes))
  return entryDetail({
    ...detail,
    input: input?.text ?? null,
    inputEncoding: input?.encoding ?? null,
    output: output?.text ?? null,
    outputEncoding: output?.encoding ?? null,
  })
}
