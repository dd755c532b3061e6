/** The calls that look at the messages of a channel. */

import { type AnswerFields, answerOf, objectOf, shapeOf } from '../../../api/describe.ts'
import { INTEGER, TEXT, TIME, TIME_OR_NULL } from '../../../api/shapes.ts'
import { formatSeconds } from '../../../core/timestamp.ts'
import type { JobSummary, MessageView, ScheduledView } from '../messages/messages.ts'
import { existing, findChannel, type WebhookCall } from './call.ts'
import { LIST_SHAPE, PAGE_FIELDS, PAGES } from './registry.ts'
import { json } from './reply.ts'
import { integerOf } from './request.ts'
import {
  channelUrl,
  endpoint,
  HEADERS,
  inBase64,
  listResult,
  messageUrl,
  pageLinks,
  payloadText,
  scheduledUrl,
} from './views.ts'

/** In every view of a job. */
export const JOB: AnswerFields<JobSummary> = {
  ListenerEndpoint: [TEXT, ({ listenerEndpoint }) => endpoint(listenerEndpoint)],
  ListenerName: [TEXT, ({ listenerName }) => listenerName],
  Status: [TEXT, ({ status }) => status],
  StatusChangedAt: [TIME, ({ statusChangedAt }) => formatSeconds(statusChangedAt)],
}
const MESSAGE: AnswerFields<MessageView> = {
  ID: [TEXT, ({ messageId }) => messageId],
  Payload: [TEXT, ({ payload }) => payloadText(payload)],
  ContentType: [TEXT, ({ contentType }) => contentType],
  ProducedBy: [TEXT, ({ producerName }) => producerName],
  ReceivedAt: [TIME, ({ receivedAt }) => formatSeconds(receivedAt)],
  DispatchedAt: [TIME, ({ dispatchedAt }) => formatSeconds(dispatchedAt)],
  Status: [TEXT, ({ status }) => status],
  Jobs: [{ type: 'array', items: shapeOf(JOB) }, ({ jobs }) => jobs.map((job) => answerOf(JOB, job))],
  Headers: [HEADERS, ({ headers }) => Object.fromEntries(headers)],
}
const SCHEDULED: AnswerFields<ScheduledView> = {
  contentType: [TEXT, ({ contentType }) => contentType],
  dispatchSchedule: [TIME, ({ dispatchSchedule }) => formatSeconds(dispatchSchedule)],
  dispatchedAt: [TIME_OR_NULL, ({ dispatchedAt: at }) => (at === null ? null : formatSeconds(at))],
  headers: [HEADERS, ({ headers }) => Object.fromEntries(headers)],
  id: [TEXT, ({ id }) => id],
  messageId: [TEXT, ({ messageId }) => messageId],
  payload: [TEXT, ({ payload }) => payloadText(payload)],
  priority: [INTEGER, ({ priority }) => priority],
  producedBy: [TEXT, ({ producedBy }) => producedBy],
  status: [TEXT, ({ status }) => status],
}
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

/** Anything but whole numbers is ignored. */
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
      const page = await scope.messages.list(channel, statuses, request.page())
      const urlOf = ({ messageId }: { readonly messageId: string }) => messageUrl(channelId, messageId)
      return listResult(`${channelUrl(channelId)}/messages`, page, urlOf, statuses)
    },
  },
  {
    method: 'GET',
    path: '/channel/:channelId/message/:messageId',
    access: 'read',
    summary: 'One message with all of its jobs',
    success: [200, shapeOf(MESSAGE)],
    errors: [404],
    async answer(request, scope) {
      const channel = await findChannel(request, scope)
      const message = existing(await scope.messages.get(channel, request.param('messageId')))
      return json({ ...answerOf(MESSAGE, message), ...inBase64(message.payload) })
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
    success: [200, shapeOf(SCHEDULED)],
    errors: [404],
    async answer(request, scope) {
      const channel = await findChannel(request, scope)
      const message = existing(await scope.messages.scheduled(channel, request.param('messageId')))
      return json({ ...answerOf(SCHEDULED, message), ...inBase64(message.payload) })
    },
  },
]
