/** The calls by service: the next event, whichever it is. */

import type { Answer } from '../../../api/exact-answer.ts'
import { INTEGER, TEXT } from '../../../api/shapes.ts'
import { BartlebyError } from '../../../core/errors.ts'
import { UNKNOWN } from '../event.ts'
import { isUuid, isUuidV4 } from '../settings/settings.ts'
import { type KafkaCall, type KafkaCalls, type KafkaRequest, ShapeRefused } from './call.ts'
import { RESOLVE_QUERY } from './describe.ts'
import { empty, json, KafkaRefused, noContent } from './reply.ts'
import { discardNamed, discardNext, type ResolveRequest, resolveNext } from './resolve.ts'
import { extraOfResolution, outcomeHeaders, PREVIEW_EVENT, previewAnswer, REHEARSED_EVENT } from './views.ts'

/** Enough to see that a body is not empty. */
const SMALL_BODY_BYTES = 1_024

const IF_MATCH = {
  'If-Match': { ...TEXT, description: 'The id of the event, in quotes: another one is not touched' },
}

export const serviceCalls: readonly KafkaCall[] = [
  {
    method: 'GET',
    path: '/kafka/:service',
    operationId: 'kafka.preview',
    summary: 'The next events of a service, in the order in which they will be resolved',
    query: {
      limit: {
        ...INTEGER,
        minimum: 1,
        description: 'At most `preview_limit`, which it is when it is left out',
      },
      detail: RESOLVE_QUERY.detail,
    },
    success: { 200: { meaning: 'OK', shape: { type: 'array', items: PREVIEW_EVENT.shape } } },
    errors: [400, 404, 422],
    answer: preview,
  },
  {
    method: 'GET',
    path: '/kafka/rpc/dry-run/:service',
    operationId: 'kafka.dryRun',
    summary: 'What processing the next event of a service would publish; nothing is written',
    query: RESOLVE_QUERY,
    success: {
      200: { meaning: 'The event; no body at all when it would be discarded', shape: PREVIEW_EVENT.shape },
    },
    errors: [400, 404, 409, 422, 500, 503, 504],
    answer: dryRun,
  },
  {
    method: 'POST',
    path: '/kafka/:service',
    operationId: 'kafka.process',
    summary:
      'Process the next event of a service: to its retry topic, or discarded when its processor says so',
    headers: IF_MATCH,
    query: { mint_correlation_id: RESOLVE_QUERY.mint_correlation_id, resend: RESOLVE_QUERY.resend },
    success: { 204: { meaning: 'Done; `Bartleby-Outcome` says what' } },
    errors: [400, 404, 409, 412, 422, 500, 503, 504],
    answer: processNext,
  },
  {
    method: 'DELETE',
    path: '/kafka/:service',
    operationId: 'kafka.discard',
    summary:
      'Discard the next event of a service; or, given the id of an event, that one, wherever it stands',
    headers: IF_MATCH,
    success: { 204: { meaning: 'Done, or done before' } },
    errors: [400, 404, 409, 412, 422],
    answer: discard,
  },
]

async function preview(request: KafkaRequest, calls: KafkaCalls): Promise<Answer> {
  const { previewLimit } = calls.settings
  const asked = request.integer('limit')
  const wanted = request.flag('detail')
  const service = await knownService(request, calls)
  const limit = asked ?? previewLimit
  if (limit < 1 || limit > previewLimit) {
    throw new KafkaRefused(
      'previewParamsError',
      { skip: 0, limit },
      `the limit must be from 1 to ${previewLimit}`,
    )
  }
  return previewAnswer(calls, { service, topic: null, skip: 0, limit }, wanted, PREVIEW_EVENT.text)
}

async function dryRun(request: KafkaRequest, calls: KafkaCalls): Promise<Answer> {
  const wanted = request.flag('detail')
  const asked = resolveFlags(request)
  const service = await knownService(request, calls)
  const found = await resolveNext(calls, { ...asked, service, dlqId: null }, true)
  const headers = { ...outcomeHeaders(found), ETag: `"${found.event.dlqId}"` }
  if (found.outcome === 'discarded') return empty(headers)
  const extra = await extraOfResolution(calls, found, { wanted, isDryRun: true })
  return json(REHEARSED_EVENT.text(found.record, extra), headers)
}

async function processNext(request: KafkaRequest, calls: KafkaCalls): Promise<Answer> {
  const asked = resolveFlags(request)
  const service = await knownService(request, calls)
  await insistOnNoBody(request)
  const done = await resolveNext(calls, { ...asked, service, dlqId: condition(request) }, false)
  return noContent(outcomeHeaders(done))
}

async function discard(request: KafkaRequest, calls: KafkaCalls): Promise<Answer> {
  const named = request.param('service')
  if (isUuid(named)) return discardById(named, request, calls)
  const service = await knownService(request, calls)
  await insistOnNoBody(request)
  await discardNext(calls, { service, topic: null, dlqId: condition(request) }, request.caller)
  return noContent()
}

/** Also of an event that is gone, or never was: asking twice gives the same answer. */
async function discardById(id: string, request: KafkaRequest, calls: KafkaCalls): Promise<Answer> {
  if (!isUuidV4(id)) {
    throw new ShapeRefused([{ loc: ['path', 'dlq_id'], kind: 'uuid_version', input: JSON.stringify(id) }])
  }
  await discardNamed(calls, id.toLowerCase(), request.caller)
  return noContent()
}

const resolveFlags = (request: KafkaRequest): Omit<ResolveRequest, 'service' | 'dlqId'> => ({
  topic: null,
  caller: request.caller,
  mintCorrelationId: request.flag('mint_correlation_id'),
  resend: request.flag('resend'),
  override: null,
})

/** Listed, nobody's or, where those are accepted, unlisted with letters. */
async function knownService(request: KafkaRequest, { settings, reader }: KafkaCalls): Promise<string> {
  const service = request.param('service')
  if (service === UNKNOWN || settings.services.has(service)) return service
  if (settings.acceptUnlistedServices && (await reader.hasLetter(service))) return service
  throw new KafkaRefused('unknownServiceError', { service }, `there is no service named '${service}'`)
}

/** Nobody shall believe that a body was used. One beyond the limit is not empty. */
async function insistOnNoBody(request: KafkaRequest): Promise<void> {
  const body = await request.body(SMALL_BODY_BYTES).catch((error: unknown) => {
    if (error instanceof BartlebyError && error.code === 'body_too_large') return 'too large'
    throw error
  })
  if (/^\s*(?:\{\s*\}\s*)?$/.test(body.toString())) return
  throw new KafkaRefused('unexpectedBodyError', {}, 'this call takes no body')
}

/** `If-Match` names the next event; none or `*` means any. What is no id matches nothing. */
function condition({ ifMatch }: KafkaRequest): string | null {
  const given = ifMatch?.trim() ?? '*'
  if (given === '*') return null
  const id = /^"(.*)"$/.exec(given)?.[1] ?? ''
  if (isUuidV4(id)) return id.toLowerCase()
  // Without quotes it is no name either.
  return isUuidV4(given) ? `"${given}"` : given
}
