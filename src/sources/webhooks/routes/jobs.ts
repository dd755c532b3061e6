/** The calls of consumers on their jobs, with the tokens of channel and consumer. */
import { type AnswerFields, answerOf, objectOf, shapeOf } from '../../../api/describe.ts'
import type { Answer } from '../../../api/exact-answer.ts'
import { INTEGER, TEXT } from '../../../api/shapes.ts'
import type { QueuedJob } from '../jobs/job-sql.ts'
import type { JobView } from '../jobs/jobs.ts'
import { Refused } from '../refusal.ts'
import {
  authorisedConsumer,
  type CallScope,
  CHANNEL_TOKEN,
  CONSUMER_TOKEN,
  type Recipient,
  type WebhookCall,
} from './call.ts'
import { JOB } from './messages.ts'
import { ACCEPTED, json, NO_CONTENT } from './reply.ts'
import { integerOf, type WebhookRequest } from './request.ts'
import {
  channelUrl,
  consumerUrl,
  HEADERS,
  inBase64,
  messageUrl,
  payloadText,
  producerUrl,
  requeueUrl,
} from './views.ts'

const DEFAULT_LIMIT = 25
const MOST_JOBS = 100

const CONSUMER_PATH = '/channel/:channelId/consumer/:consumerId'
const JOB_PATH = `${CONSUMER_PATH}/job/:jobId`

export const TOKENS = [CHANNEL_TOKEN, CONSUMER_TOKEN]

const CONTENT: AnswerFields<QueuedJob> = {
  MessageID: [TEXT, ({ messageId }) => messageId],
  Payload: [TEXT, ({ payload }) => payloadText(payload)],
  Headers: [HEADERS, ({ headers }) => Object.fromEntries(headers)],
  ContentType: [TEXT, ({ contentType }) => contentType],
}
const QUEUED: AnswerFields<QueuedJob> = {
  ID: [TEXT, ({ id }) => id],
  Priority: [INTEGER, ({ priority }) => priority],
  IncrementalTimeout: [INTEGER, ({ extraSeconds }) => extraSeconds],
  Message: [shapeOf(CONTENT), (job) => ({ ...answerOf(CONTENT, job), ...inBase64(job.payload) })],
}
export type PlacedJob<Job> = Job & { readonly channelId: string; readonly consumerId: string }

const SHOWN: AnswerFields<PlacedJob<JobView>> = {
  ...JOB,
  MessageURL: [TEXT, ({ channelId, messageId }) => messageUrl(channelId, messageId)],
  ChannelURL: [TEXT, ({ channelId }) => channelUrl(channelId)],
  ConsumerURL: [TEXT, ({ channelId, consumerId }) => consumerUrl(channelId, consumerId)],
  ProducerURL: [TEXT, ({ producerId }) => producerUrl(producerId)],
  JobRequeueURL: [
    TEXT,
    ({ channelId, consumerId, id, status }) =>
      status === 'DEAD' ? requeueUrl(channelId, consumerId, id) : '',
  ],
}

function limitOf(query: URLSearchParams): number {
  const text = query.get('limit') ?? ''
  if (text === '') return DEFAULT_LIMIT
  const limit = /^\+?\d{10,}$/.test(text) ? MOST_JOBS : integerOf(text)
  if (limit === null || limit < 0) throw new Refused('limit_invalid')
  return Math.min(limit, MOST_JOBS)
}

async function pullConsumer(request: WebhookRequest, scope: CallScope): Promise<Recipient> {
  const recipient = await authorisedConsumer(request, scope, 'consumer_unknown')
  if (recipient.consumer.type !== 'pull') throw new Refused('consumer_not_pull')
  return recipient
}

async function showJob(request: WebhookRequest, scope: CallScope): Promise<Answer> {
  const { channel, consumer } = await authorisedConsumer(request, scope, 'consumer_unknown')
  const job = await scope.jobs.get(consumer, request.param('jobId'))
  const { channelId } = channel
  const { consumerId } = consumer
  return json(answerOf(SHOWN, { ...job, channelId, consumerId }))
}

/** Some 68 years: beyond it, deadlines are no times any more. */
const MOST_SECONDS = 2 ** 31 - 1

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** JSON whose keys are known whatever their case; null when it is none. Missing keys and null stand for no state and no seconds. */
function readTransition(body: Uint8Array) {
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(body))
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  let nextState: unknown = ''
  let extraSeconds: unknown = 0
  for (const [key, given] of Object.entries(value)) {
    const name = key.toLowerCase()
    if (name === 'nextstate') nextState = given ?? ''
    if (name === 'incrementaltimeout') extraSeconds = given ?? 0
  }
  if (typeof nextState !== 'string' || typeof extraSeconds !== 'number') return null
  const usable = Number.isInteger(extraSeconds) && extraSeconds >= 0 && extraSeconds <= MOST_SECONDS
  return usable ? { nextState, extraSeconds } : null
}

async function moveJob(request: WebhookRequest, scope: CallScope): Promise<Answer> {
  const { consumer } = await pullConsumer(request, scope)
  const jobId = request.param('jobId')
  const transition = readTransition(await request.smallBody())
  if (transition === null) {
    // Whose job it is comes before what is wrong with the body.
    await scope.jobs.get(consumer, jobId)
    throw new Refused('request_body_invalid')
  }
  await scope.jobs.move(consumer, jobId, transition.nextState, transition.extraSeconds)
  return ACCEPTED
}

export const jobCalls: readonly WebhookCall[] = [
  {
    method: 'GET',
    path: `${CONSUMER_PATH}/queued-jobs`,
    access: 'own',
    summary: 'The next jobs of a pull consumer: the highest priority first, then the oldest',
    headers: TOKENS,
    query: { limit: `At most so many: ${DEFAULT_LIMIT} unless said otherwise, ${MOST_JOBS} at most` },
    success: [200, objectOf({ Result: { type: 'array', items: shapeOf(QUEUED) } })],
    errors: [400, 401, 403, 404, 412],
    async answer(request, scope) {
      const { consumer } = await pullConsumer(request, scope)
      const limit = limitOf(request.query())
      const jobs = limit === 0 ? [] : await scope.jobs.queued(consumer, limit)
      return json({ Result: jobs.map((job) => answerOf(QUEUED, job)) })
    },
  },
  {
    method: 'GET',
    path: JOB_PATH,
    access: 'own',
    summary: 'One job',
    headers: TOKENS,
    success: [200, shapeOf(SHOWN)],
    errors: [401, 403, 404],
    answer: showJob,
  },
  {
    method: 'POST',
    path: JOB_PATH,
    access: 'own',
    summary: 'Take, settle or give up a job of a pull consumer',
    headers: TOKENS,
    body: {
      mediaType: 'application/json',
      schema: {
        type: 'object',
        properties: {
          NextState: { type: 'string', enum: ['QUEUED', 'INFLIGHT', 'DELIVERED', 'DEAD'] },
          IncrementalTimeout: {
            type: 'integer',
            minimum: 0,
            description: 'Seconds that the job may take longer',
          },
        },
      },
    },
    success: [202],
    errors: [400, 401, 403, 404, 412],
    answer: moveJob,
  },
  {
    method: 'DELETE',
    path: JOB_PATH,
    access: 'own',
    summary: 'Erase a dead job whose attempts are used up',
    headers: TOKENS,
    success: [204],
    errors: [403, 404],
    async answer(request, scope) {
      const { consumer } = await authorisedConsumer(request, scope, 'resource_unknown')
      await scope.jobs.erase(consumer, request.param('jobId'))
      return NO_CONTENT
    },
  },
  {
    method: 'POST',
    path: `${JOB_PATH}/requeue-dead-job`,
    access: 'own',
    summary: 'Give a dead job a new round of attempts',
    headers: TOKENS,
    success: [202],
    errors: [400, 401, 403, 404],
    async answer(request, scope) {
      const { consumer } = await authorisedConsumer(request, scope, 'consumer_unknown')
      await scope.jobs.requeue(consumer, request.param('jobId'))
      return ACCEPTED
    },
  },
]
