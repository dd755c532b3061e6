/** The calls on all dead jobs of a consumer: look, requeue, purge. */
import { sameToken } from '../../core/same-token.ts'
import { INTEGER, objectOf, TEXT, TIME } from '../../http/describe-api.ts'
import type { DeadJob } from '../dead/dead-jobs.ts'
import { actorOf } from '../pull-moves.ts'
import { Refused } from '../refusal.ts'
import { queueOfConsumer } from '../webhook.ts'
import { authorisedConsumer, findConsumer, type Recipient, type WebhookCall } from './call.ts'
import { TOKENS } from './jobs.ts'
import { deadJobsUrl, messageUrl, pageLinks, requeueUrl } from './links.ts'
import { jobFields } from './messages.ts'
import { PAGE_FIELDS } from './registry.ts'
import { ACCEPTED, json } from './reply.ts'

const PATH = '/channel/:channelId/consumer/:consumerId/dlq'

const DEAD_SHAPE = objectOf({
  DeadJobs: {
    type: 'array',
    items: objectOf({
      ListenerEndpoint: TEXT,
      ListenerName: TEXT,
      Status: TEXT,
      StatusChangedAt: TIME,
      MessageURL: TEXT,
      JobRequeueURL: TEXT,
      ID: TEXT,
      RetryAttemptCount: INTEGER,
      Exhausted: { type: 'boolean' },
      LastError: TEXT,
    }),
  },
  Pages: { type: 'object', properties: { next: TEXT, previous: TEXT } },
})

/** Who acts on the jobs, for the history: consumers prove who they are by their token alone. */
const actorAs = ({ channel, consumer }: Recipient): string =>
  actorOf(queueOfConsumer(channel.channelId, consumer.consumerId))

const deadView = (channelId: string, consumerId: string, job: DeadJob) => ({
  ...jobFields(job),
  MessageURL: messageUrl(channelId, job.messageId),
  JobRequeueURL: requeueUrl(channelId, consumerId, job.id),
  ID: job.id,
  RetryAttemptCount: job.attempts,
  Exhausted: job.exhausted,
  LastError: job.lastError,
})

export const deadJobCalls: readonly WebhookCall[] = [
  {
    method: 'GET',
    path: PATH,
    access: 'read',
    summary: 'The dead jobs of a consumer, newest first',
    query: PAGE_FIELDS,
    success: [200, DEAD_SHAPE],
    errors: [400, 404],
    async answer(request, scope) {
      const { channel, consumer } = await findConsumer(request, scope)
      const { channelId } = channel
      const { consumerId } = consumer
      const page = await scope.dead.list(consumer, request.page())
      return json({
        DeadJobs: page.items.map((job) => deadView(channelId, consumerId, job)),
        Pages: pageLinks(deadJobsUrl(channelId, consumerId), page),
      })
    },
  },
  {
    method: 'POST',
    path: PATH,
    access: 'own',
    summary: 'Requeue all dead jobs of a consumer',
    form: { requeue: 'The token of the consumer' },
    success: [202],
    errors: [400, 404, 415],
    async answer(request, scope) {
      const form = await request.form()
      const recipient = await findConsumer(request, scope)
      if (!sameToken(recipient.consumer.token, form.get('requeue') ?? '')) {
        throw new Refused('requeue_token_wrong')
      }
      await scope.bulk.requeueAll(recipient.consumer, actorAs(recipient))
      return ACCEPTED
    },
  },
  {
    method: 'DELETE',
    path: PATH,
    access: 'own',
    summary: 'Erase all dead jobs of a consumer whose attempts are used up',
    headers: TOKENS,
    success: [200, objectOf({ deletedCount: INTEGER })],
    errors: [403, 404],
    async answer(request, scope) {
      const recipient = await authorisedConsumer(request, scope, 'resource_unknown')
      return json({ deletedCount: await scope.bulk.purge(recipient.consumer, actorAs(recipient)) })
    },
  },
]
