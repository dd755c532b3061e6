/** Consumers on the office API: `/api/webhooks`. */
import type { FastifyInstance } from 'fastify'
import Type, { type TSchema } from 'typebox'
import { type ApiCall, type ApiRequest, type ApiScope, ok, serveApi } from '../../../api/calls.ts'
import { optionalInteger, refuseUnknownFields } from '../../../api/json-body.ts'
import { limitOf } from '../../../api/query.ts'
import {
  BOOLEAN,
  INTEGER,
  oneOf,
  orNull,
  PAGE_QUERY,
  pageOf,
  type Shape,
  TEXT,
  TEXT_OR_NULL,
  TIME,
  TIME_OR_NULL,
} from '../../../api/shapes.ts'
import { viewOf } from '../../../api/view.ts'
import type { Clock, Instant } from '../../../core/clock.ts'
import { failure, refuse } from '../../../core/errors.ts'
import { decodePageToken, encodePageToken } from '../../../core/page-token.ts'
import { BULK_KINDS, type BulkRun } from '../jobs/bulk-runs.ts'
import type { ConsumerOverview } from '../numbers/consumer-overview.ts'
import { endpoint } from '../routes/views.ts'
import { CONSUMER_TYPES, type Consumer } from '../webhook.ts'
import type { Webhooks } from '../webhooks.ts'
import type { ConsumerLimits, WebhookAdmin } from './admin.ts'

/** Beyond this nobody means a limit. */
const MOST_AT_ONCE = 100_000
const MOST_PER_SECOND = 1_000_000

const LIMITS = {
  mostAtOnce: orNull(Type.Integer({ minimum: 1, maximum: MOST_AT_ONCE }), {
    description: 'Attempts of a server at the same time',
  }),
  mostPerSecond: orNull(Type.Number({ exclusiveMinimum: 0, maximum: MOST_PER_SECOND }), {
    description: 'Attempts of a server per second',
  }),
}

const CONSUMER = Type.Object({
  id: TEXT,
  channelId: TEXT,
  channelName: TEXT,
  consumerId: TEXT,
  consumerName: TEXT,
  type: oneOf(CONSUMER_TYPES),
  callbackUrl: Type.String({ description: 'Without credentials and query' }),
  queued: INTEGER,
  inFlight: INTEGER,
  delivered: INTEGER,
  dead: INTEGER,
  oldestDeadAtUtc: TIME_OR_NULL,
  state: oneOf(['delivering', 'paused', 'probing'], {
    description: 'probing: the pause is over, and one job at a time shows whether the consumer works again',
  }),
  pausedSinceUtc: TIME_OR_NULL,
  pausedUntilUtc: TIME_OR_NULL,
  pauseReason: TEXT_OR_NULL,
  ...LIMITS,
  signed: BOOLEAN,
  previousSecretSinceUtc: orNull(TIME, {
    description: 'Since when deliveries are signed with the secret before this one too',
  }),
})
export type ShownConsumer = Shape<typeof CONSUMER>

const consumerView = viewOf(CONSUMER)

function consumerOnWire(consumer: ConsumerOverview, now: Instant): ShownConsumer {
  const { callbackUrl, pausedUntil } = consumer
  const state = pausedUntil === null ? 'delivering' : pausedUntil > now ? 'paused' : 'probing'
  return consumerView({ ...consumer, callbackUrl: endpoint(callbackUrl), state })
}

const RUN = Type.Object({
  id: TEXT,
  kind: oneOf(BULK_KINDS),
  channelId: TEXT,
  consumerId: TEXT,
  expected: Type.Integer({
    description: 'Dead jobs of the consumer at the start; never less than `done`',
  }),
  done: INTEGER,
  state: oneOf(['running', 'finished']),
  by: TEXT,
  startedAtUtc: TIME,
  finishedAtUtc: TIME_OR_NULL,
})
export type ShownRun = Shape<typeof RUN>

const runView = viewOf(RUN)

const runOnWire = (run: BulkRun): ShownRun =>
  runView({ ...run, state: run.finishedAt === null ? 'running' : 'finished', by: run.actor })

interface Parts extends ApiScope {
  readonly webhooks: Pick<Webhooks, 'admin' | 'bulk'>
}

export async function webhookAdminRoutes(app: FastifyInstance, options: Parts): Promise<void> {
  serveApi(app, options, calls(options.webhooks, options.clock))
}

const calls = ({ admin, bulk }: Parts['webhooks'], clock: Clock): readonly ApiCall[] => [
  {
    method: 'GET',
    path: '/api/webhooks/consumers',
    role: 'viewer',
    operationId: 'webhooks.consumers',
    tag: 'webhooks',
    summary: 'Consumers with the numbers of their jobs, whether they are paused, their limits and signing',
    query: {
      channel: Type.String({ description: 'The id of a channel. Left out: the consumers of all channels' }),
      ...PAGE_QUERY,
    },
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
    query: { limit: PAGE_QUERY.limit },
    data: Type.Object({ runs: Type.Array(RUN) }),
    answer: async ({ query }) => ok({ runs: (await bulk.list(limitOf(query))).map(runOnWire) }),
  },
  ...onConsumer(admin, [
    {
      ...{ method: 'POST', path: '/resume', role: 'operator', operationId: 'webhooks.resume' },
      summary: 'Ends the pause of a consumer: its jobs are delivered again at once',
      data: Type.Object({ resumed: Type.Boolean({ description: 'Whether it was paused' }) }),
      answer: async (consumer) => ({ resumed: await admin.resume(consumer) }),
    },
    {
      ...{ method: 'PUT', path: '/limits', role: 'admin', operationId: 'webhooks.limits' },
      summary: 'Limits the attempts at a consumer; null, or left out, is the default of the server',
      body: { properties: LIMITS },
      data: Type.Partial(Type.Object(LIMITS)),
      check: limitsOf,
      answer: async (consumer, request) => {
        const limits = limitsOf(request)
        await admin.limit(consumer, limits)
        return limits
      },
    },
    {
      ...{ method: 'POST', path: '/secrets', role: 'admin', operationId: 'webhooks.newSecret' },
      summary:
        'Makes a new signing secret, which is shown this once; the one before it signs too until it is dropped',
      data: Type.Object({ secret: Type.String({ description: 'whsec_…, shown this once' }) }),
      answer: async (consumer) => ({ secret: await admin.newSecret(consumer) }),
    },
    {
      ...{ method: 'DELETE', path: '/secrets/previous', role: 'admin' },
      operationId: 'webhooks.dropPreviousSecret',
      summary: 'Drops the previous signing secret: only the newest signs',
      answer: (consumer) => admin.dropSecrets(consumer, 'previous'),
    },
    {
      ...{ method: 'DELETE', path: '/secrets', role: 'admin', operationId: 'webhooks.dropSecrets' },
      summary: 'Drops all signing secrets: deliveries are not signed any more',
      answer: (consumer) => admin.dropSecrets(consumer, 'all'),
    },
    {
      ...{ method: 'POST', path: '/requeue', role: 'operator', operationId: 'webhooks.requeueAll' },
      summary: 'Requeues all dead jobs of a consumer; of many it goes on in the background, see the runs',
      answer: (consumer, { caller }) => bulk.requeueAll(consumer, caller.name),
    },
    {
      ...{ method: 'POST', path: '/purge', role: 'admin', operationId: 'webhooks.purge' },
      summary: 'Erases all dead jobs of a consumer whose attempts are used up, with their letters',
      data: Type.Object({ purged: INTEGER }),
      answer: async (consumer, { caller }) => ({ purged: await bulk.purge(consumer, caller.name) }),
    },
  ]),
]

interface ConsumerCall extends Omit<ApiCall, 'tag' | 'data' | 'answer'> {
  readonly data?: TSchema
  /** Throws what is wrong with a body, before its consumer is looked for. */
  check?(request: ApiRequest): unknown
  answer(consumer: Consumer, request: ApiRequest): Promise<unknown>
}

const onConsumer = (admin: WebhookAdmin, calls: readonly ConsumerCall[]): readonly ApiCall[] =>
  calls.map(({ path, data = Type.Object({}), check, answer, ...call }) => ({
    ...call,
    path: `/api/webhooks/channels/:channel/consumers/:consumer${path}`,
    tag: 'webhooks',
    data,
    answer: async (request) => {
      const { channel = '', consumer = '' } = request.params
      check?.(request)
      return ok((await answer(await admin.consumer(channel, consumer), request)) ?? {})
    },
  }))

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
