/**
 * Events as the Kafka API shows them: for each field its description and its origin. Payloads are the stored JSON itself: parsed and
 * written again, large integers would be rounded and `1.0` would become `1`.
 */
import { type AnswerFields, answerOf, objectOf, shapeOf } from '../../../api/describe.ts'
import type { Answer } from '../../../api/exact-answer.ts'
import type { JsonSchema } from '../../../api/proto-schema.ts'
import { INTEGER, TEXT, TEXT_OR_NULL, TIME } from '../../../api/shapes.ts'
import { instant } from '../../../core/clock.ts'
import { base64 } from '../../../core/content.ts'
import { scanJson } from '../../../core/json/scan.ts'
import { formatMicros, formatTimestamp, isTimestamp, ZERO_TIME } from '../../../core/timestamp.ts'
import type { OutgoingRecord, RawHeader } from '../../../outgoing/kafka/record.ts'
import { STATE_NAMES, stateName } from '../event.ts'
import type { ChainLink, DetailedEvent, QueuePart, Sent } from '../queue-reader.ts'
import type { Resolution } from '../return/attempt.ts'
import type { StoredEvent } from '../stored-event.ts'
import { lastHeader, shownBytes } from '../wire/bytes.ts'
import { shownJson } from '../wire/json.ts'
import type { KafkaCalls } from './call.ts'
import { json } from './reply.ts'

const PAYLOAD: JsonSchema = { description: 'The JSON as it was stored; null when the value is none' }
const HEADERS: JsonSchema = { type: 'object', additionalProperties: TEXT_OR_NULL }
const TEXTS: JsonSchema = { type: 'array', items: TEXT }

/** Six fraction digits, or none on a whole second; within years of four digits. */
export function recordTime(timestampMs: bigint): string {
  const at = instant(timestampMs * 1_000n)
  if (!isTimestamp(at)) return at < ZERO_TIME ? '0001-01-01T00:00:00Z' : '9999-12-31T23:59:59.999000Z'
  const whole = formatTimestamp(at)
  return whole.includes('.') ? formatMicros(at) : whole
}

/** An earlier death. */
const LINK: AnswerFields<ChainLink> = {
  dlq_id: [TEXT, ({ dlqId }) => dlqId],
  topic: [TEXT, ({ topic }) => topic],
  partition: [INTEGER, ({ partition }) => partition],
  offset: [TEXT, ({ recordOffset }) => String(recordOffset)],
  timestamp: [TIME, ({ recordTs }) => recordTime(recordTs)],
  exc_class: [TEXT, ({ facts }) => facts.exception.class ?? ''],
  exc_msg: [TEXT, ({ facts }) => facts.exception.message ?? ''],
  sent: [
    { type: ['object', 'null'], description: 'What was sent of it, when, and by whom' },
    ({ sent }) => (sent === null ? null : sentView(sent)),
  ],
}

const sentView = (sent: Sent) => ({
  event_id: sent.eventId,
  topic: sent.target,
  partition: sent.publishedPartition,
  offset: sent.publishedOffset === null ? null : String(sent.publishedOffset),
  outcome: sent.outcome,
  resends: sent.resends,
  actor: sent.actor,
  request_id: sent.requestId,
  at: formatMicros(sent.madeAt),
})

interface Seen extends DetailedEvent {
  /** Whether a value that is no JSON is shown too. */
  readonly withValue: boolean
  /** The size of a value that was left out. */
  readonly omittedBytes: number | null
  /** What became of it meanwhile. */
  readonly outcome?: string
  /** Found when it was processed. */
  readonly warnings?: readonly string[]
}

/** The extra member `bartleby`. */
const EXTRA: AnswerFields<Seen> = {
  letter_id: [
    { ...TEXT, description: "The row key of the letter at the office's API" },
    ({ rowKey }) => rowKey,
  ],
  dlq_id: [TEXT, ({ dlqId }) => dlqId],
  state: [{ type: 'string', enum: STATE_NAMES }, ({ outcome, state }) => outcome ?? stateName(state)],
  topic: [TEXT, ({ order }) => order.topic],
  partition: [INTEGER, ({ order }) => order.partition],
  offset: [TEXT, ({ order }) => String(order.offset)],
  timestamp: [TIME, ({ timestampMs }) => recordTime(timestampMs)],
  family: [{ ...TEXT_OR_NULL, description: 'Whose headers these are' }, ({ facts }) => facts.family],
  attempts: [INTEGER, ({ attempts }) => attempts],
  attempts_reported: [{ type: ['integer', 'null'] }, ({ facts }) => facts.attemptsReported],
  chain: [
    { type: 'array', items: shapeOf(LINK), description: 'Its earlier deaths, the oldest first' },
    ({ chain }) => chain.map((link) => answerOf(LINK, link)),
  ],
  reasons: [TEXTS, ({ facts }) => facts.reasons],
  warnings: [TEXTS, (event) => warningsOf(event, event.warnings)],
}

const EXTRA_SHAPE: JsonSchema = {
  ...shapeOf(EXTRA),
  description:
    'With `detail=true`, and always on quarantined events and on one whose payload is left out; then `value_omitted_bytes` is its size. With `detail=true` also `value_base64` when the value is no JSON',
}

const text = (value: unknown): string => JSON.stringify(value)

function extraText(event: Seen): string {
  const { facts, value, withValue, omittedBytes } = event
  return text({
    ...answerOf(EXTRA, event),
    ...(omittedBytes === null ? {} : { value_omitted_bytes: omittedBytes }),
    ...(withValue && value !== null && facts.valueForm !== 'json' ? { value_base64: base64(value) } : {}),
  })
}

/** `more` was found when it was processed. */
export const warningsOf = (
  { facts, hasLaterSameKey }: Pick<DetailedEvent, 'facts' | 'hasLaterSameKey'>,
  more: readonly string[] = [],
): readonly string[] => [
  ...new Set([...facts.warnings, ...more, ...(hasLaterSameKey ? ['later_same_key'] : [])]),
]

type TextFields<Of> = Readonly<Record<string, readonly [schema: JsonSchema, of: (one: Of) => string]>>

/** One form of events: its shape, and its text with the extra member. */
const form = <Of>(fields: TextFields<Of>) => ({
  shape: {
    ...shapeOf<Of>({ ...fields, bartleby: [EXTRA_SHAPE, () => null] }),
    required: Object.keys(fields),
  },
  text(one: Of, extra: string | null): string {
    const members = Object.entries(fields).map(([name, [, of]]) => `${text(name)}:${of(one)}`)
    return `{${[...members, ...(extra === null ? [] : [`"bartleby":${extra}`])].join(',')}}`
  },
})

/** Without `hidden`; of a repeated name the last value. */
function headersText(headers: readonly RawHeader[], ...hidden: readonly string[]): string {
  const shown = new Map(headers.map(({ name, value }) => [shownBytes(name), shownBytes(value)]))
  for (const name of hidden) shown.delete(name)
  // From entries, not by assignment: a header may be called `__proto__`.
  return text(Object.fromEntries(shown))
}

const CONTENT: TextFields<StoredEvent> = {
  type_: [TEXT, ({ facts }) => text(facts.type)],
  payload: [
    PAYLOAD,
    ({ facts, value }) => (value === null || facts.valueForm !== 'json' ? 'null' : shownJson(value)),
  ],
  key: [TEXT_OR_NULL, ({ key }) => text(shownBytes(key))],
}

/** As it was read, with every header. */
export const PREVIEW_EVENT = form<StoredEvent>({
  topic: [TEXT, ({ order }) => text(order.topic)],
  ...CONTENT,
  headers: [HEADERS, ({ headers }) => headersText(headers, 'type')],
})

/** *StoredDLQEvent*. */
export const STORED_EVENT = form<StoredEvent>({
  headers: [
    HEADERS,
    ({ facts: { correlationId } }) => text(correlationId === null ? {} : { correlation_id: correlationId }),
  ],
  topic: [TEXT, ({ originalTopic }) => text(originalTopic)],
  ...CONTENT,
  dlq_id: [TEXT, ({ dlqId }) => text(dlqId)],
  timestamp: [TIME, ({ timestampMs }) => text(recordTime(timestampMs))],
  dlq_info: [
    objectOf({ service: TEXT, original_event_id: TEXT_OR_NULL, exc_class: TEXT, exc_msg: TEXT }),
    ({ service, facts: { originalEventId, exception } }) =>
      text({
        service,
        original_event_id: originalEventId,
        exc_class: exception.class ?? '',
        exc_msg: exception.message ?? '',
      }),
  ],
})

const RECORD: TextFields<OutgoingRecord> = {
  topic: [{ ...TEXT, description: 'The retry topic' }, ({ topic }) => text(topic)],
  type_: [TEXT, ({ headers }) => text(shownBytes(lastHeader(headers, 'type') ?? null) ?? '')],
  payload: [PAYLOAD, ({ value }) => (value === null || !scanJson(value).ok ? 'null' : shownJson(value))],
  key: [TEXT_OR_NULL, ({ key }) => text(shownBytes(key))],
}

/** Without its id, which is minted when it is published. */
export const REHEARSED_EVENT = form<OutgoingRecord>({
  ...RECORD,
  headers: [HEADERS, ({ headers }) => headersText(headers, 'type', 'event_id')],
})

/** *PublishableEventData*. */
export const PUBLISHABLE_EVENT = form<OutgoingRecord>({
  headers: [HEADERS, ({ headers }) => headersText(headers, 'type', 'event_id', 'correlation_id')],
  ...RECORD,
})

/** Always in quarantine: the reasons are there. */
const isShownInDetail = ({ facts }: StoredEvent, wanted: boolean): boolean =>
  wanted || facts.reasons.length > 0

export async function previewAnswer(
  { reader, settings }: KafkaCalls,
  part: Omit<QueuePart, 'maxBytes'>,
  withValue: boolean,
  textOf: (event: StoredEvent, extra: string | null) => string,
): Promise<Answer> {
  const { events, details, omittedBytes, truncated } = await reader.preview(
    { ...part, maxBytes: settings.previewMaxBytes },
    (event) => isShownInDetail(event, withValue),
  )
  const texts = events.map((event) => {
    const detail = details.get(event.letterId)
    return textOf(
      event,
      detail === undefined ? null : extraText({ ...event, ...detail, withValue, omittedBytes }),
    )
  })
  return json(`[${texts.join(',')}]`, truncated ? { 'Bartleby-Truncated': 'true' } : {})
}

export async function extraOfResolution(
  { reader }: KafkaCalls,
  { event, outcome, warnings }: Resolution,
  { wanted, isDryRun }: { readonly wanted: boolean; readonly isDryRun: boolean },
): Promise<string | null> {
  if (!isShownInDetail(event, wanted)) return null
  const seen = { withValue: wanted, omittedBytes: null, warnings, ...(isDryRun ? {} : { outcome }) }
  try {
    return extraText({ ...(await reader.detailed(event)), ...seen })
  } catch (error) {
    // It was published: that its past cannot be read must not look like a failure.
    if (isDryRun) throw error
    return null
  }
}

export const outcomeHeaders = ({ outcome, warnings }: Resolution): Answer['headers'] => ({
  'Bartleby-Outcome': outcome,
  ...(warnings.length === 0 ? {} : { 'Bartleby-Warnings': warnings.join(',') }),
})
