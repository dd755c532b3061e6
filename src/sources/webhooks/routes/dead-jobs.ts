/** The calls on all dead jobs of a consumer: look, requeue, purge. */

import { type AnswerFields, answerOf, objectOf, shapeOf } from '../../../api/describe.ts'
import { INTEGER, TEXT } from '../../../api/shapes.ts'
import { sameToken } from '../../../core/same-token.ts'
import type { DeadJob } from '../jobs/job-sql.ts'
import { actorOf } from '../jobs/pull-moves.ts'
import { Refused } from '../refusal.ts'
import { queueOfConsumer } from '../webhook.ts'
import { authorisedConsumer, findConsumer, type Recipient, type WebhookCall } from './call.ts'
import { type PlacedJob, TOKENS } from './jobs.ts'
import { JOB } from './messages.ts'
import { PAGE_FIELDS, PAGES } from './registry.ts'
import { ACCEPTED, json } from './reply.ts'
import { deadJobsUrl, messageUrl, pageLinks, requeueUrl } from './views.ts'

const PATH = '/channel/:channelId/consumer/:consumerId/dlq'

const DEAD: AnswerFields<PlacedJob<DeadJob>> = {
  ...JOB,
  MessageURL: [TEXT, ({ channelId, messageId }) => messageUrl(channelId, messageId)],
  JobRequeueURL: [TEXT, ({ channelId, consumerId, id }) => requeueUrl(channelId, consumerId, id)],
  ID: [TEXT, ({ id }) => id],
  RetryAttemptCount: [INTEGER, ({ attempts }) => attempts],
  Exhausted: [{ type: 'boolean' }, ({ exhausted }) => exhausted],
  LastError: [TEXT, ({ lastError }) => lastError],
}

/** For the history: consumers prove who they are by their token alone. */
const actorAs = ({ channel, consumer }: Recipient): string =>
  actorOf(queueOfConsumer(channel.channelId, consumer.consumerId))

export const deadJobCalls: readonly WebhookCall[] = [
  {
    method: 'GET',
    path: PATH,
    access: 'read',
    summary: 'The dead jobs of a consumer, newest first',
    query: PAGE_FIELDS,
    success: [200, objectOf({ DeadJobs: { type: 'array', items: shapeOf(DEAD) }, Pages: PAGES })],
    errors: [400, 404],
    async answer(request, scope) {
      const { channel, consumer } = await findConsumer(request, scope)
      const { channelId } = channel
      const { consumerId } = consumer
      const page = await scope.jobs.dead(consumer, request.page())
      return json({
        DeadJobs: page.items.map((job) => answerOf(DEAD, { ...job, channelId, consumerId })),
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
