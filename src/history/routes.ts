/** History on HTTP: lists and details for readers, and the record of a run for workers in any language. */
import { isUtf8 } from 'node:buffer'
import type { FastifyInstance } from 'fastify'
import { type ApiCall, type ApiRequest, type ApiScope, onceKeyOf, serveApi } from '../api/calls.ts'
import {
  DATE,
  FILED_ENGINE,
  INTEGER,
  objectOf,
  PAGE_QUERY,
  pageOf,
  SOUGHT_ENGINE,
  TEXT,
  TEXT_OR_NULL,
  TIME,
  textUpTo,
} from '../api/describe.ts'
import {
  type JsonBody,
  optionalText,
  refuseUnknownFields,
  requiredInteger,
  requiredText,
} from '../api/json-body.ts'
import { limitOf, periodOf } from '../api/query.ts'
import { storable } from '../core/content.ts'
import { failure, refuse } from '../core/errors.ts'
import { JsonText } from '../core/json/text.ts'
import { formatMicros } from '../core/timestamp.ts'
import type { HistoryDetail, HistorySummary } from './entry.ts'
import type { History } from './history.ts'
import type { RunReport } from './intake.ts'
import { HISTORY_STATUSES, type HistoryStatus } from './record.ts'

interface HistoryRoutesOptions extends ApiScope {
  readonly history: History
}

/** Ids are parts of index keys and of row keys, which have their limits. */
const MAX_ID_CHARACTERS = 256
const MAX_ERROR_BYTES = 1_048_576

const STATUS = { type: 'string', enum: HISTORY_STATUSES }

const ENTRY_FIELDS = {
  engine: TEXT,
  rowKey: TEXT,
  instanceId: TEXT,
  operation: TEXT,
  status: STATUS,
  durationMs: INTEGER,
  createdAtUtc: TIME,
  correlationId: TEXT,
  actor: TEXT_OR_NULL,
}

const ENCODING = { type: ['string', 'null'], enum: ['utf8', 'base64', null] }

const DETAIL_FIELDS = {
  ...ENTRY_FIELDS,
  input: TEXT_OR_NULL,
  inputEncoding: ENCODING,
  output: TEXT_OR_NULL,
  outputEncoding: ENCODING,
  error: TEXT_OR_NULL,
  notes: TEXT_OR_NULL,
  letter: { type: ['object', 'null'], properties: { engine: TEXT, rowKey: TEXT } },
}

const LIST_QUERY = {
  engine: SOUGHT_ENGINE,
  instanceId: TEXT,
  status: STATUS,
  operation: TEXT,
  fromDate: DATE,
  toDate: DATE,
  correlationId: TEXT,
  ...PAGE_QUERY,
}

const ANY = { description: 'Any JSON value; kept as it is written' }

const RECORD_FIELDS = {
  engine: { ...FILED_ENGINE, ...textUpTo(MAX_ID_CHARACTERS) },
  instanceId: textUpTo(MAX_ID_CHARACTERS),
  operation: textUpTo(MAX_ID_CHARACTERS),
  status: STATUS,
  durationMs: { type: 'integer', minimum: 0 },
  input: ANY,
  output: ANY,
  error: { type: 'string', description: 'What failed; needed when status is Failed' },
  correlationId: textUpTo(MAX_ID_CHARACTERS),
  sourceId: textUpTo(MAX_ID_CHARACTERS),
}

/** Adds the calls of the history to a server. */
export async function historyRoutes(app: FastifyInstance, options: HistoryRoutesOptions): Promise<void> {
  serveApi(app, options, [listCall(options.history), getCall(options.history), recordCall(options.history)])
}

const listCall = (history: History): ApiCall => ({
  method: 'GET',
  path: '/api/history',
  role: 'viewer',
  operationId: 'history.list',
  tag: 'history',
  summary: 'Operations of engines and acts on letters, the newest first',
  query: LIST_QUERY,
  data: pageOf(objectOf(ENTRY_FIELDS)),
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
  data: objectOf(DETAIL_FIELDS),
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
  body: { fields: RECORD_FIELDS, required: ['engine', 'operation', 'status', 'durationMs'] },
  data: objectOf(ENTRY_FIELDS),
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
  const { fields } = body
  refuseUnknownFields(fields, Object.keys(RECORD_FIELDS))
  const id = (name: string) => optionalText(fields, name, { max: MAX_ID_CHARACTERS })
  const error = fields.error ?? null
  if (error !== null && typeof error !== 'string') throw refuse('error', 'give a text')
  const members = JsonText.of(body.text)
  return {
    engine: requiredText(fields, 'engine', { max: MAX_ID_CHARACTERS }),
    operation: requiredText(fields, 'operation', { max: MAX_ID_CHARACTERS }),
    status: statusNamed(requiredText(fields, 'status', { max: 64 })),
    durationMs: requiredInteger(fields, 'durationMs', 0),
    instanceId: id('instanceId'),
    correlationId: id('correlationId') ?? correlationId,
    sourceId: id('sourceId'),
    actor: caller.name,
    input: valueBytes(body, members, 'input'),
    output: valueBytes(body, members, 'output'),
    error: error === null ? null : storable(error, MAX_ERROR_BYTES),
  }
}

/** A text is kept as it is; any other value as it was written, which keeps the digits of large numbers. */
function valueBytes({ fields }: JsonBody, members: JsonText, name: 'input' | 'output'): Uint8Array | null {
  const value = fields[name] ?? null
  if (value === null) return null
  return Buffer.from(typeof value === 'string' ? value : (members.at(name)?.written ?? ''))
}

/** An entry with the names of the wire. */
const entryOnWire = ({ createdAt, ...entry }: HistorySummary) => ({
  engine: entry.engine,
  rowKey: entry.rowKey,
  instanceId: entry.instanceId,
  operation: entry.operation,
  status: entry.status,
  durationMs: entry.durationMs,
  createdAtUtc: formatMicros(createdAt),
  correlationId: entry.correlationId,
  actor: entry.actor,
})

function detailOnWire(detail: HistoryDetail) {
  const [input, inputEncoding] = textOf(detail.input)
  const [output, outputEncoding] = textOf(detail.output)
  const { error, notes, letter } = detail
  return { ...entryOnWire(detail), input, inputEncoding, output, outputEncoding, error, notes, letter }
}

/** Bytes as text when they are UTF-8, as base64 otherwise; and which. */
function textOf(bytes: Uint8Array | null): readonly [string | null, 'utf8' | 'base64' | null] {
  if (bytes === null) return [null, null]
  const encoding = isUtf8(bytes) ? 'utf8' : 'base64'
  return [Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(encoding), encoding]
}
