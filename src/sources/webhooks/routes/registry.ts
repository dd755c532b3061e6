/** The calls on producers, channels and consumers. */
import { type AnswerFields, answerOf, objectOf, shapeOf } from '../../../api/describe.ts'
import type { Answer } from '../../../api/exact-answer.ts'
import type { JsonSchema } from '../../../api/proto-schema.ts'
import { oneOf, TEXT, TIME } from '../../../api/shapes.ts'
import { formatHttpDate, formatSeconds } from '../../../core/timestamp.ts'
import type { Holders } from '../registry/holders.ts'
import { type Channel, CONSUMER_TYPES, type Consumer, type Holder, type Producer } from '../webhook.ts'
import { type CallScope, existing, findChannel, findConsumer, type WebhookCall } from './call.ts'
import { json, NO_CONTENT } from './reply.ts'
import type { WebhookRequest } from './request.ts'
import { channelUrl, consumerUrl, deadJobsUrl, listResult, producerUrl } from './views.ts'

const CONDITION = 'If-Unmodified-Since'

export const PAGE_FIELDS = {
  next: 'The cursor of the page before; the links of a page hold it',
  previous: 'The cursor of the page behind',
}

export const PAGES = { type: 'object', properties: { next: TEXT, previous: TEXT } } as const

export const LIST_SHAPE = objectOf({
  Result: { type: 'array', items: TEXT },
  Pages: PAGES,
  Links: { type: 'null' },
})

const HOLDER_FIELDS = {
  token: 'Left out: a new random one, also when it exists already',
  name: 'Left out: the id',
}
const holder = <T extends Holder>(idOf: (one: T) => string): AnswerFields<T> => ({
  ID: [TEXT, idOf],
  Name: [TEXT, ({ name }) => name],
  Token: [TEXT, ({ token }) => token],
  ChangedAt: [TIME, ({ updatedAt }) => formatSeconds(updatedAt)],
})
const PRODUCER = holder<Producer>(({ producerId }) => producerId)
const CHANNEL: AnswerFields<Channel> = {
  ...holder<Channel>(({ channelId }) => channelId),
  ConsumersURL: [TEXT, ({ channelId }) => `${channelUrl(channelId)}/consumers`],
  MessagesURL: [TEXT, ({ channelId }) => `${channelUrl(channelId)}/messages`],
  BroadcastURL: [TEXT, ({ channelId }) => `${channelUrl(channelId)}/broadcast`],
  MessagesStatusURL: [TEXT, ({ channelId }) => `${channelUrl(channelId)}/messages-status`],
}
type PlacedConsumer = Consumer & { readonly channelId: string }
const CONSUMER: AnswerFields<PlacedConsumer> = {
  ...holder<PlacedConsumer>(({ consumerId }) => consumerId),
  CallbackURL: [TEXT, ({ callbackUrl }) => callbackUrl],
  DeadLetterQueueURL: [TEXT, ({ channelId, consumerId }) => deadJobsUrl(channelId, consumerId)],
  Type: [oneOf(CONSUMER_TYPES), ({ type }) => type],
}

/** `Last-Modified` is what the next change must name. */
function resource<T extends Holder>(fields: AnswerFields<T>, one: T, { settings }: CallScope): Answer {
  const token = settings.api.exposeTokens ? one.token : ''
  return json(answerOf(fields, { ...one, token }), { 'Last-Modified': formatHttpDate(one.updatedAt) })
}

const condition = (request: WebhookRequest) => request.header(CONDITION.toLowerCase())

const got = (path: string, summary: string, shape: JsonSchema) =>
  ({ method: 'GET', path, access: 'read tokens', summary, success: [200, shape], errors: [404] }) as const

const put = (path: string, summary: string, shape: JsonSchema, errors: readonly number[]) =>
  ({
    method: 'PUT',
    path,
    access: 'write',
    summary,
    headers: [CONDITION],
    success: [200, shape],
    errors,
  }) as const

const listed = (path: string, summary: string, errors: readonly number[]) =>
  ({
    method: 'GET',
    path,
    access: 'read',
    summary,
    query: PAGE_FIELDS,
    success: [200, LIST_SHAPE],
    errors,
  }) as const

function holderCalls<T extends Holder>(
  name: 'producer' | 'channel',
  fields: AnswerFields<T>,
  of: (scope: CallScope) => Pick<Holders<T>, 'list' | 'get' | 'put'>,
  urlOf: (one: T) => string,
): readonly WebhookCall[] {
  const path = `/${name}/:${name}Id`
  const idIn = (request: WebhookRequest) => request.param(`${name}Id`)
  const shape = shapeOf(fields)
  return [
    {
      ...listed(`/${name}s`, `The ${name}s, newest first`, [400]),
      answer: async (request, scope) => listResult(`/${name}s`, await of(scope).list(request.page()), urlOf),
    },
    {
      ...got(path, `One ${name}`, shape),
      answer: async (request, scope) => resource(fields, existing(await of(scope).get(idIn(request))), scope),
    },
    {
      ...put(path, `Create or replace a ${name}`, shape, [400, 412, 415]),
      form: HOLDER_FIELDS,
      async answer(request, scope) {
        const form = await request.form()
        const given = { name: form.get('name'), token: form.get('token') }
        return resource(fields, await of(scope).put(idIn(request), given, condition(request)), scope)
      },
    },
  ]
}

const CONSUMER_PATH = '/channel/:channelId/consumer/:consumerId'

const consumerCalls: readonly WebhookCall[] = [
  {
    ...listed('/channel/:channelId/consumers', 'The consumers of a channel, newest first', [400, 404]),
    async answer(request, scope) {
      const channel = await findChannel(request, scope)
      const page = await scope.consumers.list(channel, request.page())
      return listResult(`${channelUrl(channel.channelId)}/consumers`, page, ({ consumerId }) =>
        consumerUrl(channel.channelId, consumerId),
      )
    },
  },
  {
    ...got(CONSUMER_PATH, 'One consumer', shapeOf(CONSUMER)),
    async answer(request, scope) {
      const { channel, consumer } = await findConsumer(request, scope)
      return resource(CONSUMER, { ...consumer, channelId: channel.channelId }, scope)
    },
  },
  {
    ...put(CONSUMER_PATH, 'Create or replace a consumer', shapeOf(CONSUMER), [400, 404, 412, 415]),
    form: {
      callbackUrl: 'Where a push consumer is called; pull consumers have one too',
      ...HOLDER_FIELDS,
      type: '`push` or `pull`; left out or empty: push',
    },
    answer: (request, scope) => putConsumer(request, scope),
  },
  {
    method: 'DELETE',
    path: CONSUMER_PATH,
    access: 'write',
    summary: 'Delete a consumer that has no jobs',
    headers: [CONDITION],
    success: [204],
    errors: [400, 404, 409, 412],
    async answer(request, scope) {
      const channel = await findChannel(request, scope)
      await scope.consumers.delete(channel, request.param('consumerId'), condition(request))
      return NO_CONTENT
    },
  },
]

async function putConsumer(request: WebhookRequest, scope: CallScope) {
  const form = await request.form()
  const channel = await findChannel(request, scope)
  const fields = {
    name: form.get('name'),
    token: form.get('token'),
    callbackUrl: form.get('callbackUrl'),
    type: form.get('type'),
  }
  const consumer = await scope.consumers.put(channel, request.param('consumerId'), fields, condition(request))
  return resource(CONSUMER, { ...consumer, channelId: channel.channelId }, scope)
}

export const registryCalls: readonly WebhookCall[] = [
  ...holderCalls(
    'producer',
    PRODUCER,
    ({ producers }) => producers,
    ({ producerId }) => producerUrl(producerId),
  ),
  ...holderCalls(
    'channel',
    CHANNEL,
    ({ channels }) => channels,
    ({ channelId }) => channelUrl(channelId),
  ),
  ...consumerCalls,
]
