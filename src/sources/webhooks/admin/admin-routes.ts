/** Consumers of webhooks on the office API, for those who look after them: `/api/webhooks`. */
import type { FastifyInstance } from 'fastify'
import type { Role } from '../../../api/auth.ts'
import { type ApiCall, type ApiRequest, type ApiScope, ok, serveApi } from '../../../api/calls.ts'
import {
  type ApiDescription,
  INTEGER,
  objectOf,
  PAGE_QUERY,
  pageOf,
  TEXT,
  TEXT_OR_NULL,
  TIME,
  TIME_OR_NULL,
} from '../../../api/describe.ts'
import { optionalInteger, refuseUnknownFields } from '../../../api/json-body.ts'
import { limitOf } from '../../../api/query.ts'
import { type Clock, type Instant, instant } from '../../../core/clock.ts'
import { failure, refuse } from '../../../core/errors.ts'
import { decodePageToken, encodePageToken } from '../../../core/page-token.ts'
import { formatMicros } from '../../../core/timestamp.ts'
import { BULK_KINDS, type BulkRun } from '../dead/bulk-runs.ts'
import type { ConsumerOverview } from '../numbers/consumer-overview.ts'
import { endpoint } from '../routes/views.ts'
import { CONSUMER_TYPES } from '../webhook.ts'
import type { ConsumerLimits, WebhookAdmin } from './admin.ts'

const LIST_QUERY = {
  channel: { type: 'string', description: 'The id of a channel. Left out: the consumers of all channels' },
  ...PAGE_QUERY,
}

const RUNS_QUERY = { limit: PAGE_QUERY.limit }

/** Beyond this nobody means a limit. */
const MOST_AT_ONCE = 100_000
const MOST_PER_SECOND = 1_000_000

const LIMITS = {
  mostAtOnce: {
    type: ['integer', 'null'],
    minimum: 1,
    maximum: MOST_AT_ONCE,
    description: 'Attempts of a server at the same time',
  },
  mostPerSecond: {
    type: ['number', 'null'],
    exclusiveMinimum: 0,
    maximum: MOST_PER_SECOND,
    description: 'Attempts of a server per second',
  },
}

const CONSUMER = objectOf({
  id: TEXT,
  channelId: TEXT,
  channelName: TEXT,
  consumerId: TEXT,
  consumerName: TEXT,
  type: { type: 'string', enum: [...CONSUMER_TYPES] },
  callbackUrl: { type: 'string', description: 'Without credentials and query' },
  queued: INTEGER,
  inFlight: INTEGER,
  delivered: INTEGER,
  dead: INTEGER,
  oldestDeadAtUtc: TIME_OR_NULL,
  state: {
    type: 'string',
    enum: ['delivering', 'paused', 'probing'],
    description: 'probing: the pause is over, and one job at a time shows whether the consumer works again',
  },
  pausedSinceUtc: TIME_OR_NULL,
  pausedUntilUtc: TIME_OR_NULL,
  pauseReason: TEXT_OR_NULL,
  ...LIMITS,
  signed: { type: 'boolean' },
  previousSecretSinceUtc: {
    ...TIME_OR_NULL,
    description: 'Since when deliveries are signed with the secret before this one too',
  },
})

const RUNS = objectOf({
  runs: {
    type: 'array',
    items: objectOf({
      id: TEXT,
      kind: { type: 'string', enum: [...BULK_KINDS] },
      channelId: TEXT,
      consumerId: TEXT,
      expected: {
        type: 'integer',
        description: 'Dead jobs of the consumer at the start; never less than `done`',
      },
      done: INTEGER,
      state: { type: 'string', enum: ['running', 'finished'] },
      by: TEXT,
      startedAtUtc: TIME,
      finishedAtUtc: TIME_OR_NULL,
    }),
  },
})

const RESUMED = objectOf({
  resumed: { type: 'boolean', description: 'Whether it was paused' },
})
const SECRET = objectOf({ secret: { type: 'string', description: 'whsec_…, shown this once' } })
const PURGED = objectOf({ purged: INTEGER })
const NOTHING = objectOf({})

export interface WebhookAdminRoutesOptions extends ApiScope {
  readonly admin: WebhookAdmin
}

/** Adds the calls to a server. */
export async function webhookAdminRoutes(
  app: FastifyInstance,
  options: WebhookAdminRoutesOptions,
): Promise<void> {
  serveApi(app, options, calls(options.admin, options.clock))
}

const calls = (admin: WebhookAdmin, clock: Clock): readonly ApiCall[] => [
  {
    method: 'GET',
    path: '/api/webhooks/consumers',
    role: 'viewer',
    operationId: 'webhooks.consumers',
    tag: 'webhooks',
    summary: 'Consumers with the numbers of their jobs, whether they are paused, their limits and signing',
    query: LIST_QUERY,
    data: pageOf(CONSUMER),
    answer: async ({ query }) => {
      const channelId = query.get('channel') ?? null
      const filters = { list: 'webhooks.consumers', channel: channelId ?? '' }
      const token = query.get('continuationToken')
      const limit = limitOf(query)
      const after = token === undefined ? null : placeOf(decodePageToken(filters, token))
      const found = await admin.consumers({ channelId, after, limit: limit + 1 })
      const items = found.slice(0, limit)
      const last = found.length > limit ? items.at(-1) : undefined
      const continuationToken =
        last === undefined
          ? null
          : encodePageToken(filters, { channel: String(last.channelNumber), consumer: last.consumerId })
      return ok({ items: items.map((item) => consumerOnWire(item, clock.now())), continuationToken })
    },
  },
  {
    method: 'GET',
    path: '/api/webhooks/runs',
    role: 'viewer',
    operationId: 'webhooks.runs',
    tag: 'webhooks',
    summary: 'Requeues and purges of all dead jobs of a consumer, the newest first, and how far they are',
    query: RUNS_QUERY,
    data: RUNS,
    answer: async ({ query }) => ok({ runs: (await admin.runs(limitOf(query))).map(runOnWire) }),
  },
  onConsumer('POST', '/resume', 'operator', {
    operationId: 'webhooks.resume',
    summary: 'Ends the pause of a consumer: its jobs are delivered again at once',
    data: RESUMED,
    answer: async (channelId, consumerId) => ({ resumed: await admin.resume(channelId, consumerId) }),
  }),
  onConsumer('PUT', '/limits', 'admin', {
    operationId: 'webhooks.limits',
    summary: 'Limits the attempts at a consumer; null, or left out, is the default of the server',
    body: { properties: LIMITS },
    data: { type: 'object', properties: LIMITS },
    answer: async (channelId, consumerId, request) => {
      const limits = limitsOf(request)
      await admin.limit(channelId, consumerId, limits)
      return limits
    },
  }),
  onConsumer('POST', '/secrets', 'admin', {
    operationId: 'webhooks.newSecret',
    summary:
      'Makes a new signing secret, which is shown this once; the one before it signs too until it is dropped',
    data: SECRET,
    answer: async (channelId, consumerId) => ({ secret: await admin.newSecret(channelId, consumerId) }),
  }),
  onConsumer('DELETE', '/secrets/previous', 'admin', {
    operationId: 'webhooks.dropPreviousSecret',
    summary: 'Drops the previous signing secret: only the newest signs',
    data: NOTHING,
    answer: async (channelId, consumerId) => {
      await admin.dropPreviousSecret(channelId, consumerId)
      return {}
    },
  }),
  onConsumer('DELETE', '/secrets', 'admin', {
    operationId: 'webhooks.dropSecrets',
    summary: 'Drops all signing secrets: deliveries are not signed any more',
    data: NOTHING,
    answer: async (channelId, consumerId) => {
      await admin.dropSecrets(channelId, consumerId)
      return {}
    },
  }),
  onConsumer('POST', '/requeue', 'operator', {
    operationId: 'webhooks.requeueAll',
    summary: 'Requeues all dead jobs of a consumer; of many it goes on in the background, see the runs',
    data: NOTHING,
    answer: async (channelId, consumerId, { caller }) => {
      await admin.requeueAll(channelId, consumerId, caller.name)
      return {}
    },
  }),
  onConsumer('POST', '/purge', 'admin', {
    operationId: 'webhooks.purge',
    summary: 'Erases all dead jobs of a consumer whose attempts are used up, with their letters',
    data: PURGED,
    answer: async (channelId, consumerId, { caller }) => ({
      purged: await admin.purge(channelId, consumerId, caller.name),
    }),
  }),
]

/** A call on one consumer. */
function onConsumer(
  method: 'POST' | 'PUT' | 'DELETE',
  path: string,
  role: Role,
  call: Pick<ApiDescription, 'operationId' | 'summary' | 'data' | 'body'> & {
    answer(channelId: string, consumerId: string, request: ApiRequest): Promise<object>
  },
): ApiCall {
  const { answer, ...described } = call
  return {
    method,
    path: `/api/webhooks/channels/:channel/consumers/:consumer${path}`,
    role,
    ...described,
    tag: 'webhooks',
    answer: async (request) => {
      const { channel = '', consumer = '' } = request.params
      return ok(await answer(channel, consumer, request))
    },
  }
}

function limitsOf({ body: { fields } }: ApiRequest): ConsumerLimits {
  refuseUnknownFields(fields, Object.keys(LIMITS))
  const perSecond = fields.mostPerSecond ?? null
  const isRate = typeof perSecond === 'number' && perSecond > 0 && perSecond <= MOST_PER_SECOND
  if (perSecond !== null && !isRate) {
    throw refuse('mostPerSecond', `give a number above 0, up to ${MOST_PER_SECOND}`)
  }
  return {
    mostAtOnce: optionalInteger(fields, 'mostAtOnce', 1, MOST_AT_ONCE),
    mostPerSecond: isRate ? perSecond : null,
  }
}

function placeOf({ channel = '', consumer = '' }: Readonly<Record<string, string>>) {
  if (!/^\d{1,9}$/.test(channel)) throw failure('continuation_token_invalid', { reason: 'it is malformed' })
  return { channelNumber: Number(channel), consumerId: consumer }
}

export function consumerOnWire(consumer: ConsumerOverview, now: Instant) {
  const { number, channelNumber, pause, oldestDeadAt, isSigned, previousSecretSince, ...told } = consumer
  return {
    ...told,
    callbackUrl: endpoint(consumer.callbackUrl),
    oldestDeadAtUtc: timeOnWire(oldestDeadAt),
    state: pause === null ? 'delivering' : pause.until > now ? 'paused' : 'probing',
    pausedSinceUtc: timeOnWire(pause?.since ?? null),
    pausedUntilUtc: timeOnWire(pause?.until ?? null),
    pauseReason: pause?.reason ?? null,
    signed: isSigned,
    previousSecretSinceUtc: timeOnWire(previousSecretSince),
  }
}

const timeOnWire = (at: Instant | null): string | null => (at === null ? null : formatMicros(instant(at)))

export const runOnWire = (run: BulkRun) => ({
  id: run.id,
  kind: run.kind,
  channelId: run.channelId,
  consumerId: run.consumerId,
  expected: run.expected,
  done: run.done,
  state: run.finishedAt === null ? 'running' : 'finished',
  by: run.actor,
  startedAtUtc: formatMicros(run.startedAt),
  finishedAtUtc: timeOnWire(run.finishedAt),
})
