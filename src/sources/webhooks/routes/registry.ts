/** The calls on producers, channels and consumers. */
import { objectOf, TEXT, TIME } from '../../../api/describe.ts'
import type { JsonSchema } from '../../../api/proto-schema.ts'
import type { Holders } from '../registry/holders.ts'
import type { WebhookSettings } from '../settings.ts'
import type { Holder } from '../webhook.ts'
import { type CallScope, existing, findChannel, findConsumer, type WebhookCall } from './call.ts'
import { NO_CONTENT } from './reply.ts'
import type { WebhookRequest } from './request.ts'
import {
  channelUrl,
  channelView,
  consumerUrl,
  consumerView,
  listResult,
  producerUrl,
  producerView,
  resource,
} from './views.ts'

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
const HOLDER = { ID: TEXT, Name: TEXT, Token: TEXT, ChangedAt: TIME }
const CHANNEL_SHAPE = objectOf({
  ...HOLDER,
  ConsumersURL: TEXT,
  MessagesURL: TEXT,
  BroadcastURL: TEXT,
  MessagesStatusURL: TEXT,
})
const CONSUMER_SHAPE = objectOf({
  ...HOLDER,
  CallbackURL: TEXT,
  DeadLetterQueueURL: TEXT,
  Type: { type: 'string', enum: ['push', 'pull'] },
})

const exposes = ({ settings }: { readonly settings: WebhookSettings }) => settings.api.exposeTokens
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

/** The calls on producers or on channels, which are known by their ids alone. */
function holderCalls<T extends Holder>(
  name: 'producer' | 'channel',
  shape: JsonSchema,
  of: (scope: CallScope) => Pick<Holders<T>, 'list' | 'get' | 'put'>,
  urlOf: (one: T) => string,
  view: (one: T, exposeTokens: boolean) => unknown,
): readonly WebhookCall[] {
  const path = `/${name}/:${name}Id`
  const idIn = (request: WebhookRequest) => request.param(`${name}Id`)
  const shown = (one: T, scope: CallScope) => resource(view(one, exposes(scope)), one)
  return [
    {
      ...listed(`/${name}s`, `The ${name}s, newest first`, [400]),
      answer: async (request, scope) => listResult(`/${name}s`, await of(scope).list(request.page()), urlOf),
    },
    {
      ...got(path, `One ${name}`, shape),
      answer: async (request, scope) => shown(existing(await of(scope).get(idIn(request))), scope),
    },
    {
      ...put(path, `Create or replace a ${name}`, shape, [400, 412, 415]),
      form: HOLDER_FIELDS,
      async answer(request, scope) {
        const form = await request.form()
        const fields = { name: form.get('name'), token: form.get('token') }
        return shown(await of(scope).put(idIn(request), fields, condition(request)), scope)
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
    ...got(CONSUMER_PATH, 'One consumer', CONSUMER_SHAPE),
    async answer(request, scope) {
      const { channel, consumer } = await findConsumer(request, scope)
      return resource(consumerView(channel.channelId, consumer, exposes(scope)), consumer)
    },
  },
  {
    ...put(CONSUMER_PATH, 'Create or replace a consumer', CONSUMER_SHAPE, [400, 404, 412, 415]),
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
  return resource(consumerView(channel.channelId, consumer, exposes(scope)), consumer)
}

export const registryCalls: readonly WebhookCall[] = [
  ...holderCalls(
    'producer',
    objectOf(HOLDER),
    ({ producers }) => producers,
    ({ producerId }) => producerUrl(producerId),
    producerView,
  ),
  ...holderCalls(
    'channel',
    CHANNEL_SHAPE,
    ({ channels }) => channels,
    ({ channelId }) => channelUrl(channelId),
    channelView,
  ),
  ...consumerCalls,
]
