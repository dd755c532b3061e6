/** Outboxes on HTTP: their messages, metrics and health, below `/api/outbox` and as well below `/api/workflow/outbox`. */
import type { FastifyInstance } from 'fastify'
import { type ApiCall, type ApiScope, serveApi } from '../../../api/calls.ts'
import {
  type ApiDescription,
  INTEGER,
  objectOf,
  TEXT,
  TEXT_OR_NULL,
  TIME_OR_NULL,
} from '../../../api/describe.ts'
import type { Query } from '../../../api/query.ts'
import type { Instant } from '../../../core/clock.ts'
import { refuse } from '../../../core/errors.ts'
import { formatMicros } from '../../../core/timestamp.ts'
import { OUTBOX_STATUSES, type OutboxStatus } from '../table/message.ts'
import { HEALTH_STATUSES, worstOf } from './health.ts'
import { LIST_REACH, type ListedMessage, listMessages } from './list.ts'
import type { OutboxHandle } from './outbox-handle.ts'
import type { OutboxReading, OutboxReadings } from './readings.ts'

export interface OutboxRoutesOptions extends ApiScope {
  readonly readings: OutboxReadings
}

const MAX_PAGE_SIZE = 200
const DEFAULT_PAGE_SIZE = 50
const MAX_PAGE = 999_999_999

const STATUS = { type: 'string', enum: [...OUTBOX_STATUSES] }
const NUMBER = { type: 'number' }
const INTEGER_OR_NULL = { type: ['integer', 'null'] }
const NUMBER_OR_NULL = { type: ['number', 'null'] }
const listOf = (items: object) => ({ type: 'array', items })

const LIST_QUERY = {
  status: { ...STATUS, description: 'pending includes failed: pending, and failed at least once' },
  eventType: TEXT,
  tenantId: TEXT,
  outbox: { type: 'string', description: 'The name of an outbox. Left out: the first that is configured' },
  page: { type: 'integer', minimum: 1, maximum: MAX_PAGE, default: 1 },
  pageSize: { type: 'integer', minimum: 1, maximum: MAX_PAGE_SIZE, default: DEFAULT_PAGE_SIZE },
}

const MESSAGE = objectOf({
  id: TEXT,
  tenantId: TEXT,
  eventType: TEXT,
  createdAt: TIME_OR_NULL,
  retryCount: INTEGER,
  processedAt: TIME_OR_NULL,
  deadAt: TIME_OR_NULL,
  nextAttemptAt: TIME_OR_NULL,
  status: STATUS,
  idempotencyKey: TEXT_OR_NULL,
  orderingKey: TEXT_OR_NULL,
  lastErrorSnippet: { ...TEXT_OR_NULL, maxLength: 200 },
})

const LIST = objectOf({
  outbox: TEXT_OR_NULL,
  items: listOf(MESSAGE),
  page: INTEGER,
  pageSize: INTEGER,
  total: { type: 'integer', maximum: LIST_REACH },
  totalIsCapped: {
    type: 'boolean',
    description: `There are more messages than the first ${LIST_REACH}, which were looked at`,
  },
})

const METRICS = objectOf({
  outboxes: listOf(
    objectOf({
      outbox: TEXT,
      backlog: INTEGER_OR_NULL,
      failedPending: INTEGER_OR_NULL,
      oldestAgeSeconds: NUMBER_OR_NULL,
      dead: INTEGER_OR_NULL,
      dispatchedTotal: INTEGER,
      failuresTotal: INTEGER,
      duplicatesTotal: INTEGER,
      conflictsTotal: INTEGER,
      windowSeconds: INTEGER,
      throughputPerSecond: NUMBER,
      failureRatio: NUMBER,
      dispatchSeconds: objectOf({
        count: INTEGER,
        sum: NUMBER,
        buckets: listOf(objectOf({ le: NUMBER_OR_NULL, count: INTEGER })),
      }),
      error: { ...TEXT_OR_NULL, description: 'Why the backlog is not known' },
    }),
  ),
})

const HEALTH_FIELDS = { status: { type: 'string', enum: [...HEALTH_STATUSES] }, reasons: listOf(TEXT) }

const HEALTH = objectOf({ ...HEALTH_FIELDS, outboxes: listOf(objectOf({ outbox: TEXT, ...HEALTH_FIELDS })) })

/** Adds the calls on outboxes to a server. */
export async function outboxRoutes(app: FastifyInstance, options: OutboxRoutesOptions): Promise<void> {
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
      { summary: 'What waits in every outbox, and what this server has delivered', data: METRICS },
      async () => ({ outboxes: (await readings.read()).map(metricsOnWire) }),
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
  const { items, total, totalIsCapped } = await handle.db.session('outbox.list', (session) =>
    listMessages(session, layout, { status, eventType, tenantId, page, pageSize }),
  )
  if (totalIsCapped && (page - 1) * pageSize >= LIST_REACH) {
    const last = Math.ceil(LIST_REACH / pageSize)
    throw refuse('page', `'${page}' lies behind the first ${LIST_REACH} messages; give 1 to ${last}`)
  }
  return { outbox: handle.name, items: items.map(messageOnWire), page, pageSize, total, totalIsCapped }
}

/** The outbox that is asked for, or the first; null when there is none at all. */
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

/** A whole number from 1; null when it is not given. */
function wholeNumberOf(query: Query, name: string, max: number): number | null {
  const text = query.get(name)
  if (text === undefined) return null
  const number = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (number < 1 || number > max) throw refuse(name, `'${shown(text)}' is no whole number from 1 to ${max}`)
  return number
}

const shown = (text: string): string => text.slice(0, 64).toWellFormed()

const timeOnWire = (at: Instant | null): string | null => (at === null ? null : formatMicros(at))

const messageOnWire = (message: ListedMessage) => ({
  ...message,
  createdAt: timeOnWire(message.createdAt),
  processedAt: timeOnWire(message.processedAt),
  deadAt: timeOnWire(message.deadAt),
  nextAttemptAt: timeOnWire(message.nextAttemptAt),
})

const UNKNOWN = { backlog: null, failedPending: null, oldestAgeSeconds: null, dead: null }

function metricsOnWire({ outbox, looked, meter }: OutboxReading) {
  const { bounds, counts, sum } = meter.durations
  return {
    outbox,
    ...(looked.ok ? looked.backlog : UNKNOWN),
    dispatchedTotal: meter.dispatched,
    failuresTotal: meter.failures,
    duplicatesTotal: meter.duplicates,
    conflictsTotal: meter.conflicts,
    windowSeconds: meter.windowSeconds,
    throughputPerSecond: meter.throughputPerSecond,
    failureRatio: meter.failureRatio,
    dispatchSeconds: {
      count: counts.at(-1) ?? 0,
      sum,
      // The last has no bound.
      buckets: counts.map((count, index) => ({ le: bounds[index] ?? null, count })),
    },
    error: looked.ok ? null : `${looked.trouble.what}: ${looked.trouble.detail}`,
  }
}

function healthOnWire(readings: readonly OutboxReading[]) {
  return {
    status: worstOf(readings.map(({ health }) => health.status)),
    reasons: readings.flatMap(({ outbox, health }) => health.reasons.map((reason) => `${outbox}: ${reason}`)),
    outboxes: readings.map(({ outbox, health }) => ({ outbox, ...health })),
  }
}
