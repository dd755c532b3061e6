/** The calls by service and original topic, in the shapes of the DLQ service of GHGA; and those that concern all. */

import { INTEGER } from '../../../api/describe.ts'
import type { Answer } from '../../../api/exact-answer.ts'
import { KafkaRefused } from '../refusal.ts'
import { canHaveLetters } from '../stored-event.ts'
import type { KafkaCall, KafkaCalls } from './call.ts'
import {
  DETAIL,
  FLAGS,
  HEALTH,
  PROCESS_BODY,
  PUBLISHABLE_EVENT,
  RESOLVE_QUERY,
  STORED_EVENT,
  SUMMARY,
} from './describe.ts'
import { type ProcessBody, readProcessBody } from './override.ts'
import { json, refused } from './reply.ts'
import type { KafkaRequest } from './request.ts'
import { resolveNext } from './resolve.ts'
import {
  extraOfResolution,
  outcomeHeaders,
  previewAnswer,
  publishableText,
  storedEventText,
} from './views.ts'

export const topicCalls: readonly KafkaCall[] = [
  {
    method: 'GET',
    path: '/kafka/health',
    operationId: 'kafka.health',
    summary: 'Whether the process answers; how Kafka is, is told at /health',
    isOpen: true,
    success: { 200: { meaning: 'OK', shape: HEALTH } },
    errors: [],
    answer: async () => json('{"status":"OK"}'),
  },
  {
    method: 'GET',
    path: '/kafka/summary',
    operationId: 'kafka.summary',
    summary: 'How many unresolved events there are, by service and original topic',
    success: { 200: { meaning: 'OK', shape: SUMMARY } },
    errors: [],
    answer: async (_request, { reader }) => {
      const summary = [...(await reader.summary())]
      const services = summary.map(([service, topics]) => [service, Object.fromEntries(topics)])
      return json(JSON.stringify(Object.fromEntries(services)))
    },
  },
  {
    method: 'GET',
    path: '/kafka/:service/:topic',
    operationId: 'kafka.previewOfTopic',
    summary: 'The next events of a service that come from one topic, the oldest first',
    query: {
      skip: { ...INTEGER, minimum: 0, default: 0 },
      limit: { ...INTEGER, minimum: 0, description: 'Left out, or beyond it: `preview_limit`' },
      detail: DETAIL,
    },
    success: { 200: { meaning: 'OK', shape: { type: 'array', items: STORED_EVENT } } },
    errors: [400, 422],
    answer: preview,
  },
  {
    method: 'POST',
    path: '/kafka/:service/:topic',
    operationId: 'kafka.processOfTopic',
    summary:
      'Process the oldest event of a service that comes from one topic, as it is or as the override says',
    query: { dry_run: FLAGS.dry_run, ...RESOLVE_QUERY },
    body: PROCESS_BODY,
    success: { 200: { meaning: 'The event; null when it is discarded', shape: PUBLISHABLE_EVENT } },
    errors: [400, 404, 409, 413, 422, 500, 503, 504],
    answer: processNext,
  },
]

async function preview(request: KafkaRequest, calls: KafkaCalls): Promise<Answer> {
  const { previewLimit } = calls.settings
  const skip = request.integer('skip') ?? 0
  const limit = request.integer('limit') ?? previewLimit
  const wanted = request.flag('detail')
  if (skip < 0 || limit < 0) {
    throw new KafkaRefused('previewParamsError', { skip, limit }, 'neither skip nor limit may be negative')
  }
  const [service, topic] = [request.param('service'), request.param('topic')]
  const part = { service, topic, skip, limit: Math.min(limit, previewLimit) }
  return previewAnswer(calls, part, wanted, storedEventText)
}

async function processNext(request: KafkaRequest, calls: KafkaCalls): Promise<Answer> {
  const isDryRun = request.flag('dry_run')
  const wanted = request.flag('detail')
  const mintCorrelationId = request.flag('mint_correlation_id')
  const resend = request.flag('resend')
  const { dlqId, override, overrideText } = readProcessBody(await request.body())
  const [service, topic] = [request.param('service'), request.param('topic')]
  // What is not known here, and was never listed, has no letters, and is nobody's to be locked.
  const isKnown = calls.settings.services.has(service) || (await calls.reader.hasLetter(service))
  if (!isKnown || !canHaveLetters(service, topic))
    throw new KafkaRefused('emptyDLQError', { service, topic }, 'nothing is unresolved there')
  const { caller } = request
  const asked = { service, topic, dlqId, caller, mintCorrelationId, resend, override }
  try {
    const done = await resolveNext(calls, asked, isDryRun)
    const text =
      done.outcome === 'discarded'
        ? 'null'
        : publishableText(done, await extraOfResolution(calls, done, { wanted, isDryRun }))
    return json(text, outcomeHeaders(done))
  } catch (error) {
    if (overrideText === null || !isOverrideRefusal(error)) throw error
    return refusedOverride(error, overrideText)
  }
}

const isOverrideRefusal = (error: unknown): error is KafkaRefused<'overrideValidationError'> =>
  error instanceof KafkaRefused && error.id === 'overrideValidationError'

/** With the override as it was given: its digits may be what is wrong with it. */
function refusedOverride(
  error: KafkaRefused<'overrideValidationError'>,
  overrideText: NonNullable<ProcessBody['overrideText']>,
): Answer {
  const { reason, reasons } = error.data
  const data = `{"event":${overrideText},"reason":${JSON.stringify(reason)},"reasons":${JSON.stringify(reasons)}}`
  return refused(error, data)
}
