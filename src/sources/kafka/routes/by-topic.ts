/** The calls by service and original topic, in the shapes of GHGA's DLQ service, and those about all services. */

import type { Answer } from '../../../api/exact-answer.ts'
import { INTEGER } from '../../../api/shapes.ts'
import { JsonText } from '../../../core/json/text.ts'
import type { Override } from '../return/terms.ts'
import { isUuid, isUuidV4 } from '../settings/settings.ts'
import { canHaveLetters } from '../stored-event.ts'
import {
  type FaultKind,
  type KafkaCall,
  type KafkaCalls,
  type KafkaRequest,
  type ShapeFault,
  ShapeRefused,
} from './call.ts'
import { DRY_RUN, HEALTH, PROCESS_BODY, RESOLVE_QUERY, SUMMARY } from './describe.ts'
import { json, KafkaRefused, refused } from './reply.ts'
import { resolveNext } from './resolve.ts'
import { extraOfResolution, outcomeHeaders, PUBLISHABLE_EVENT, previewAnswer, STORED_EVENT } from './views.ts'

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
      detail: RESOLVE_QUERY.detail,
    },
    success: { 200: { meaning: 'OK', shape: { type: 'array', items: STORED_EVENT.shape } } },
    errors: [400, 422],
    answer: preview,
  },
  {
    method: 'POST',
    path: '/kafka/:service/:topic',
    operationId: 'kafka.processOfTopic',
    summary:
      'Process the oldest event of a service that comes from one topic, as it is or as the override says',
    query: { dry_run: DRY_RUN, ...RESOLVE_QUERY },
    body: PROCESS_BODY,
    success: { 200: { meaning: 'The event; null when it is discarded', shape: PUBLISHABLE_EVENT.shape } },
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
  return previewAnswer(calls, part, wanted, STORED_EVENT.text)
}

async function processNext(request: KafkaRequest, calls: KafkaCalls): Promise<Answer> {
  const isDryRun = request.flag('dry_run')
  const wanted = request.flag('detail')
  const mintCorrelationId = request.flag('mint_correlation_id')
  const resend = request.flag('resend')
  const { dlqId, override, overrideText } = readProcessBody(await request.body())
  const [service, topic] = [request.param('service'), request.param('topic')]
  // An unknown service has no letters, and gets no row to lock.
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
        : PUBLISHABLE_EVENT.text(done.record, await extraOfResolution(calls, done, { wanted, isDryRun }))
    return json(text, outcomeHeaders(done))
  } catch (error) {
    if (overrideText === null || !isOverrideRefusal(error)) throw error
    return refusedOverride(error, overrideText)
  }
}

const isOverrideRefusal = (error: unknown): error is KafkaRefused<'overrideValidationError'> =>
  error instanceof KafkaRefused && error.id === 'overrideValidationError'

/** With the override as it was given: its digits may be what is wrong. */
function refusedOverride(
  error: KafkaRefused<'overrideValidationError'>,
  overrideText: NonNullable<ProcessBody['overrideText']>,
): Answer {
  const { reason, reasons } = error.data
  const data = `{"event":${overrideText},"reason":${JSON.stringify(reason)},"reasons":${JSON.stringify(reasons)}}`
  return refused(error, data)
}

/** `{"dlq_id": …, "override": …}`. The payload is cut out as it was written, so that every digit reaches Kafka. */
interface ProcessBody {
  readonly dlqId: string
  readonly override: Override | null
  /** JSON of its four members. */
  readonly overrideText: string | null
}

const EVENT_CORE = ['topic', 'type_', 'payload', 'key'] as const

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Refuses with all that is wrong. */
export function readProcessBody(bytes: Uint8Array): ProcessBody {
  if (bytes.length === 0) throw new ShapeRefused([missing(['body'], 'null')])
  const text = jsonTextOf(bytes)
  if (!isObject(text)) throw new ShapeRefused([wrong(['body'], 'model_attributes_type', text)])
  const members = JsonText.of(text)
  const faults: ShapeFault[] = []
  for (const name of EVENT_CORE) {
    const given = members.at(name)?.written
    // These mean an override; ignored, another event would be published.
    if (given !== undefined) faults.push(wrong(['body', name], 'extra_forbidden', given))
  }
  const dlqId = readDlqId(members.at('dlq_id')?.written, text, faults)
  const given = members.at('override')?.written ?? 'null'
  const override = given === 'null' ? null : readOverride(given, faults)
  if (faults.length > 0) throw new ShapeRefused(faults)
  return { dlqId, override: override?.override ?? null, overrideText: override?.text ?? null }
}

/** The fault has the position where reading stopped, if known. */
function jsonTextOf(bytes: Uint8Array): string {
  try {
    const text = utf8.decode(bytes)
    JSON.parse(text)
    return text.trim()
  } catch (error) {
    const at = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1] ?? '0'
    throw new ShapeRefused([wrong(['body', Number(at)], 'json_invalid', '{}')])
  }
}

function readDlqId(given: string | undefined, body: string, faults: ShapeFault[]): string {
  const loc = ['body', 'dlq_id']
  const id = given === undefined ? null : textOf(given)
  if (given === undefined) faults.push(missing(loc, body))
  else if (id === null) faults.push(wrong(loc, 'uuid_type', given))
  else if (!isUuid(id)) faults.push(wrong(loc, 'uuid_parsing', given))
  else if (!isUuidV4(id)) faults.push(wrong(loc, 'uuid_version', given))
  return id?.toLowerCase() ?? ''
}

function readOverride(
  text: string,
  faults: ShapeFault[],
): { readonly override: Override; readonly text: string } | null {
  const loc = ['body', 'override']
  if (!isObject(text)) {
    faults.push(wrong(loc, 'model_attributes_type', text))
    return null
  }
  const members = JsonText.of(text)
  const before = faults.length
  for (const name of EVENT_CORE) {
    const given = members.at(name)?.written
    if (given === undefined) faults.push(missing([...loc, name], text))
    else if (name === 'payload') {
      if (!isObject(given)) faults.push(wrong([...loc, name], 'dict_type', given))
    } else {
      const kind = stringFault(given)
      if (kind !== null) faults.push(wrong([...loc, name], kind, given))
    }
  }
  if (faults.length > before) return null
  const given = (name: (typeof EVENT_CORE)[number]): string => members.at(name)?.written ?? 'null'
  return {
    override: {
      topic: textOf(given('topic')) ?? '',
      type: textOf(given('type_')) ?? '',
      key: textOf(given('key')) ?? '',
      value: Buffer.from(given('payload')),
    },
    text: `{${EVENT_CORE.map((name) => `"${name}":${given(name)}`).join(',')}}`,
  }
}

const isObject = (text: string): boolean => text.startsWith('{')

/** Null when it is no string. */
function textOf(json: string): string | null {
  return json.startsWith('"') ? String(JSON.parse(json)) : null
}

/** Half a surrogate pair has no bytes. */
function stringFault(json: string): FaultKind | null {
  const text = textOf(json)
  if (text === null) return 'string_type'
  return text.isWellFormed() ? null : 'string_unicode'
}

const wrong = (loc: ShapeFault['loc'], kind: FaultKind, input: string): ShapeFault => ({ loc, kind, input })
const missing = (loc: ShapeFault['loc'], input: string): ShapeFault => wrong(loc, 'missing', input)
