/** Messages, metrics and health of outboxes, below `/api/outbox` and `/api/workflow/outbox`. */
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { type ApiCall, type ApiScope, serveApi } from '../../../api/calls.ts'
import { type AnswerFields, type ApiDescription, answerOf, shapeOf } from '../../../api/describe.ts'
import type { Query } from '../../../api/query.ts'
import {
  INTEGER,
  INTEGER_OR_NULL,
  NUMBER,
  NUMBER_OR_NULL,
  oneOf,
  orNull,
  TEXT,
  TEXT_OR_NULL,
} from '../../../api/shapes.ts'
import { refuse } from '../../../core/errors.ts'
import { OUTBOX_STATUSES, type OutboxStatus } from '../table/message.ts'
import { type Backlog, HEALTH_STATUSES, worstOf } from './health.ts'
import { LIST_REACH, listMessages, MESSAGE } from './list.ts'
import type { OutboxHandle } from './outbox-handle.ts'
import type { OutboxReading, OutboxReadings } from './readings.ts'

const MAX_PAGE_SIZE = 200
const DEFAULT_PAGE_SIZE = 50
const MAX_PAGE = 999_999_999

const LIST_QUERY = {
  status: oneOf(OUTBOX_STATUSES, {
    description: 'pending includes failed: pending, and failed at least once',
  }),
  eventType: TEXT,
  tenantId: TEXT,
  outbox: Type.String({ description: 'The name of an outbox. Left out: the first that is configured' }),
  page: Type.Integer({ minimum: 1, maximum: MAX_PAGE, default: 1 }),
  pageSize: Type.Integer({ minimum: 1, maximum: MAX_PAGE_SIZE, default: DEFAULT_PAGE_SIZE }),
}

const LIST = Type.Object({
  outbox: TEXT_OR_NULL,
  items: Type.Array(MESSAGE),
  page: INTEGER,
  pageSize: INTEGER,
  total: Type.Integer({ maximum: LIST_REACH }),
  totalIsCapped: Type.Boolean({
    description: `There are more messages than the first ${LIST_REACH}, which were looked at`,
  }),
})

/** Null when the outbox cannot be read. */
const waiting =
  (number: keyof Backlog) =>
  ({ looked }: OutboxReading) =>
    looked.ok ? looked.backlog[number] : null

const METRICS = {
  outbox: [TEXT, ({ outbox }) => outbox],
  backlog: [INTEGER_OR_NULL, waiting('backlog')],
  failedPending: [INTEGER_OR_NULL, waiting('failedPending')],
  oldestAgeSeconds: [NUMBER_OR_NULL, waiting('oldestAgeSeconds')],
  dead: [INTEGER_OR_NULL, waiting('dead')],
  dispatchedTotal: [INTEGER, ({ meter }) => meter.dispatched],
  failuresTotal: [INTEGER, ({ meter }) => meter.failures],
  duplicatesTotal: [INTEGER, ({ meter }) => meter.duplicates],
  conflictsTotal: [INTEGER, ({ meter }) => meter.conflicts],
  windowSeconds: [INTEGER, ({ meter }) => meter.windowSeconds],
  throughputPerSecond: [NUMBER, ({ meter }) => meter.throughputPerSecond],
  failureRatio: [NUMBER, ({ meter }) => meter.failureRatio],
  dispatchSeconds: [
    Type.Object({
      count: INTEGER,
      sum: NUMBER,
      buckets: Type.Array(Type.Object({ le: NUMBER_OR_NULL, count: INTEGER })),
    }),
    ({ meter: { durations } }) => ({
      count: durations.counts.at(-1) ?? 0,
      sum: durations.sum,
      buckets: durations.counts.map((count, index) => ({ le: durations.bounds[index] ?? null, count })),
    }),
  ],
  error: [
    orNull(TEXT, { description: 'Why the backlog is not known' }),
    ({ looked }) => (looked.ok ? null : `${looked.trouble.what}: ${looked.trouble.detail}`),
  ],
} as const satisfies AnswerFields<OutboxReading>

const HEALTH_FIELDS = { status: oneOf(HEALTH_STATUSES), reasons: Type.Array(TEXT) }

const HEALTH = Type.Object({
  ...HEALTH_FIELDS,
  outboxes: Type.Array(Type.Object({ outbox: TEXT, ...HEALTH_FIELDS })),
})

export async function outboxRoutes(
  app: FastifyInstance,
  options: ApiScope & { readonly readings: OutboxReadings },
): Promise<void> {
  const calls = [
    ...callsBelow('/api/outbox', 'outbox', options.readings),
    ...callsBelow('/api/workflow/outbox', 'workflow.outbox', options.readings),
  ]
  serveApi(app, options, calls)
}

function callsBelow(path: string, operation: string, readings: OutboxReadings): readonly ApiCall[] {
  const call = (
    name: 'list' | 'metrics' | 'health',
    description: Pick<ApiDescription, 'summary' | 'query' | 'data'>,
    answer: (query: Query) => Promise<unknown>,
  ): ApiCall => ({
    method: 'GET',
    path: name === 'list' ? path : `${path}/${name}`,
    role: 'viewer',
    operationId: `${operation}.${name}`,
    tag: 'outbox',
    ...description,
    answer: async ({ query }) => ({ status: 200, data: await answer(query) }),
  })
  const summaryOfList =
    'Messages of an outbox: those to be delivered in the order of delivery, dead and processed ones the latest first'
  return [
    call('list', { summary: summaryOfList, query: LIST_QUERY, data: LIST }, (query) =>
      list(readings.handles(), query),
    ),
    call(
      'metrics',
      {
        summary: 'What waits in every outbox, and what this server has delivered',
        data: Type.Object({ outboxes: Type.Array(shapeOf(METRICS)) }),
      },
      async () => ({ outboxes: (await readings.read()).map((reading) => answerOf(METRICS, reading)) }),
    ),
    call(
      'health',
      { summary: 'Whether the outboxes are well: the worst of them, and each', data: HEALTH },
      async () => healthOnWire(await readings.read()),
    ),
  ]
}

async function list(handles: readonly OutboxHandle[], query: Query) {
  const handle = handleOf(handles, query)
  const status = statusOf(query)
  const page = wholeNumberOf(query, 'page', MAX_PAGE) ?? 1
  const pageSize = wholeNumberOf(query, 'pageSize', MAX_PAGE_SIZE) ?? DEFAULT_PAGE_SIZE
  if (handle === null) return { outbox: null, items: [], page, pageSize, total: 0, totalIsCapped: false }
  const eventType = query.get('eventType') ?? null
  const tenantId = query.get('tenantId') ?? null
  const layout = await handle.layout()
  const listed = await handle.db.session('outbox.list', (session) =>
    listMessages(session, layout, { status, eventType, tenantId, page, pageSize }),
  )
  if (listed.totalIsCapped && (page - 1) * pageSize >= LIST_REACH) {
    const last = Math.ceil(LIST_REACH / pageSize)
    throw refuse('page', `'${page}' lies behind the first ${LIST_REACH} messages; give 1 to ${last}`)
  }
  return { outbox: handle.name, page, pageSize, ...listed }
}

/** Left out: the first; null when there is none at all. */
function handleOf(handles: readonly OutboxHandle[], query: Query): OutboxHandle | null {
  const name = query.get('outbox')
  if (name === undefined) return handles[0] ?? null
  const handle = handles.find((each) => each.name === name)
  if (handle !== undefined) return handle
  const names = handles.map((each) => each.name).join(', ')
  throw refuse(
    'outbox',
    names === '' ? 'no outbox is configured, leave it out' : `'${shown(name)}' is none of ${names}`,
  )
}

function statusOf(query: Query): OutboxStatus | null {
  const text = query.get('status')
  if (text === undefined) return null
  const status = OUTBOX_STATUSES.find((known) => known === text)
  if (status !== undefined) return status
  throw refuse('status', `'${shown(text)}' is none of ${OUTBOX_STATUSES.join(', ')}`)
}

/** From 1; null when it is not given. */
function wholeNumberOf(query: Query, name: string, max: number): number | null {
  const text = query.get(name)
  if (text === undefined) return null
  const number = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (number < 1 || number > max) throw refuse(name, `'${shown(text)}' is no whole number from 1 to ${max}`)
  return number
}

const shown = (text: string): string => text.slice(0, 64).toWellFormed()

function healthOnWire(readings: readonly OutboxReading[]) {
  return {
    status: worstOf(readings.map(({ health }) => health.status)),
    reasons: readings.flatMap(({ outbox, health }) => health.reasons.map((reason) => `${outbox}: ${reason}`)),
    outboxes: readings.map(({ outbox, health }) => ({ outbox, ...health })),
  }
}
