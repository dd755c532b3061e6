/** The calls that look at the messages of a channel. */
import { formatSeconds } from '../../core/timestamp.ts'
import { INTEGER, objectOf, TEXT, TIME, TIME_OR_NULL } from '../../http/describe-api.ts'
import type { JobSummary, MessageView, ScheduledView } from '../messages.ts'
import { existing, findChannel, type WebhookCall } from './call.ts'
import { channelUrl, messageUrl, pageLinks, scheduledUrl } from './links.ts'
import { LIST_SHAPE, PAGE_FIELDS } from './registry.ts'
import { json } from './reply.ts'
import { integerOf } from './request.ts'
import { endpoint, headerFields, listResult, payloadText } from './views.ts'

const HEADERS = { type: 'object', additionalProperties: TEXT } as const
const PAGES = { type: 'object', properties: { next: TEXT, previous: TEXT } } as const

const JOB = { ListenerEndpoint: TEXT, ListenerName: TEXT, Status: TEXT, StatusChangedAt: TIME }
const MESSAGE_SHAPE = objectOf({
  ID: TEXT,
  Payload: TEXT,
  ContentType: TEXT,
  ProducedBy: TEXT,
  ReceivedAt: TIME,
  DispatchedAt: TIME,
  Status: TEXT,
  Jobs: { type: 'array', items: objectOf(JOB) },
  Headers: HEADERS,
})
const SCHEDULED_SHAPE = objectOf({
  contentType: TEXT,
  dispatchSchedule: TIME,
  dispatchedAt: TIME_OR_NULL,
  headers: HEADERS,
  id: TEXT,
  messageId: TEXT,
  payload: TEXT,
  priority: INTEGER,
  producedBy: TEXT,
  status: TEXT,
})
const COUNTS_SHAPE = {
  type: 'object',
  required: ['counts'],
  properties: {
    counts: {
      type: 'object',
      additionalProperties: objectOf({ Count: INTEGER, Links: objectOf({ messages: TEXT }) }),
    },
    next_scheduled_message_at: TIME,
  },
} as const

/** What jobs of every view have in common. */
export const jobFields = (job: JobSummary) => ({
  ListenerEndpoint: endpoint(job.listenerEndpoint),
  ListenerName: job.listenerName,
  Status: job.status,
  StatusChangedAt: formatSeconds(job.statusChangedAt),
})

function messageView(message: MessageView) {
  const { text, base64 } = payloadText(message.payload)
  return {
    ID: message.messageId,
    Payload: text,
    ContentType: message.contentType,
    ProducedBy: message.producerName,
    ReceivedAt: formatSeconds(message.receivedAt),
    DispatchedAt: formatSeconds(message.dispatchedAt),
    Status: message.status,
    Jobs: message.jobs.map(jobFields),
    Headers: headerFields(message.headers),
    ...(base64 === null ? {} : { PayloadBase64: base64 }),
  }
}

function scheduledView(message: ScheduledView) {
  const { text, base64 } = payloadText(message.payload)
  return {
    contentType: message.contentType,
    dispatchSchedule: formatSeconds(message.dispatchSchedule),
    dispatchedAt: message.dispatchedAt === null ? null : formatSeconds(message.dispatchedAt),
    headers: headerFields(message.headers),
    id: message.id,
    messageId: message.messageId,
    payload: text,
    priority: message.priority,
    producedBy: message.producedBy,
    status: message.status,
    ...(base64 === null ? {} : { PayloadBase64: base64 }),
  }
}

/** The whole numbers among the values of a parameter; what is none is ignored. */
const statusesOf = (query: URLSearchParams): readonly number[] => [
  ...new Set(
    query
      .getAll('status')
      .map(integerOf)
      .filter((status) => status !== null),
  ),
]

export const messageCalls: readonly WebhookCall[] = [
  {
    method: 'GET',
    path: '/channel/:channelId/messages',
    access: 'read',
    summary: 'The messages of a channel, newest first',
    query: { ...PAGE_FIELDS, status: '102 for dispatched ones; may be repeated' },
    success: [200, LIST_SHAPE],
    errors: [400, 404],
    async answer(request, scope) {
      const channel = await findChannel(request, scope)
      const { channelId } = channel
      const statuses = statusesOf(request.query())
      const page = await scope.messages.list(channel, statuses.length === 0 ? null : statuses, request.page())
      const urlOf = ({ messageId }: { readonly messageId: string }) => messageUrl(channelId, messageId)
      return listResult(`${channelUrl(channelId)}/messages`, page, urlOf, statuses)
    },
  },
  {
    method: 'GET',
    path: '/channel/:channelId/message/:messageId',
    access: 'read',
    summary: 'One message with all of its jobs',
    success: [200, MESSAGE_SHAPE],
    errors: [404],
    async answer(request, scope) {
      const channel = await findChannel(request, scope)
      return json(messageView(existing(await scope.messages.get(channel, request.param('messageId')))))
    },
  },
  {
    method: 'GET',
    path: '/channel/:channelId/messages-status',
    access: 'read',
    summary: 'How many messages a channel has of each status',
    success: [200, COUNTS_SHAPE],
    errors: [],
    answer: async (request, { status }) => json(await status.messages(request.param('channelId'))),
  },
  {
    method: 'GET',
    path: '/channel/:channelId/scheduled-messages',
    access: 'read',
    summary: 'What was scheduled on a channel, newest first',
    query: { ...PAGE_FIELDS, status: '101 for those that wait, 102 for those that were dispatched' },
    success: [200, objectOf({ pages: PAGES, result: { type: 'array', items: TEXT } })],
    errors: [400, 404],
    async answer(request, scope) {
      const channel = await findChannel(request, scope)
      const { channelId } = channel
      const status = integerOf(request.query().get('status') ?? '')
      const page = await scope.messages.listScheduled(channel, status, request.page())
      const path = `${channelUrl(channelId)}/scheduled-messages`
      return json({
        pages: pageLinks(path, page, status === null ? [] : [status]),
        result: page.items.map(({ messageId }) => scheduledUrl(channelId, messageId)),
      })
    },
  },
  {
    method: 'GET',
    path: '/channel/:channelId/scheduled-message/:messageId',
    access: 'read',
    summary: 'One message that was scheduled',
    success: [200, SCHEDULED_SHAPE],
    errors: [404],
    async answer(request, scope) {
      const channel = await findChannel(request, scope)
      return json(
        scheduledView(existing(await scope.messages.scheduled(channel, request.param('messageId')))),
      )
    },
  },
]
