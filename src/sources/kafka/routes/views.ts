/**
 * Events as the Kafka API shows them, as text. Payloads are the stored JSON itself: parsed and written again, large integers would be
 * rounded and `1.0` would become `1`.
 */

import type { Answer } from '../../../api/exact-answer.ts'
import { instant } from '../../../core/clock.ts'
import { base64 } from '../../../core/content.ts'
import { scanJson } from '../../../core/json/scan.ts'
import { formatMicros, formatTimestamp, isTimestamp, ZERO_TIME } from '../../../core/timestamp.ts'
import type { OutgoingRecord, RawHeader } from '../../../outgoing/kafka/record.ts'
import { type StoredEvent, stateName } from '../event.ts'
import type { ChainLink, EventDetail, QueuePart, Sent } from '../queue-reader.ts'
import type { Resolution } from '../return/attempt.ts'
import { lastHeader, shownBytes } from '../wire/bytes.ts'
import { shownJson } from '../wire/json.ts'
import type { KafkaCalls } from './call.ts'
import { json } from './reply.ts'

const objectText = (members: Readonly<Record<string, string>>): string =>
  `{${Object.entries(members)
    .map(([name, value]) => `${JSON.stringify(name)}:${value}`)
    .join(',')}}`

const text = (value: unknown): string => JSON.stringify(value)

/** The time of a record: six fraction digits, or none at all on a whole second; as near as years have four digits. */
export function recordTime(timestampMs: bigint): string {
  const at = instant(timestampMs * 1_000n)
  if (!isTimestamp(at)) return at < ZERO_TIME ? '0001-01-01T00:00:00Z' : '9999-12-31T23:59:59.999000Z'
  const whole = formatTimestamp(at)
  return whole.includes('.') ? formatMicros(at) : whole
}

/** Headers by their names, except some; of a name that comes twice the last value. */
function headersText(headers: readonly RawHeader[], hidden: readonly string[]): string {
  const shown = new Map(headers.map(({ name, value }) => [shownBytes(name), shownBytes(value)]))
  for (const name of hidden) shown.delete(name)
  // No header becomes a member of the prototype: entries are defined, not assigned.
  return text(Object.fromEntries(shown))
}

/** What a member of the extra object is added to; nothing, where none is wanted. */
const withExtra = (members: Readonly<Record<string, string>>, extra: string | null): string =>
  objectText(extra === null ? members : { ...members, bartleby: extra })

const payloadOf = ({ facts, value }: StoredEvent): string =>
  value === null || facts.valueForm !== 'json' ? 'null' : shownJson(value)

/** The next event of a service: where it was read, with every header. */
export const previewText = (event: StoredEvent, extra: string | null): string =>
  withExtra(
    {
      topic: text(event.order.topic),
      type_: text(event.facts.type),
      payload: payloadOf(event),
      key: text(shownBytes(event.key)),
      headers: headersText(event.headers, ['type']),
    },
    extra,
  )

/** The same by its original topic: *StoredDLQEvent*. */
export const storedEventText = (event: StoredEvent, extra: string | null): string => {
  const { facts } = event
  return withExtra(
    {
      headers: text(facts.correlationId === null ? {} : { correlation_id: facts.correlationId }),
      topic: text(event.originalTopic),
      type_: text(facts.type),
      payload: payloadOf(event),
      key: text(shownBytes(event.key)),
      dlq_id: text(event.dlqId),
      timestamp: text(recordTime(event.timestampMs)),
      dlq_info: text({
        service: event.service,
        original_event_id: facts.originalEventId,
        exc_class: facts.exception.class ?? '',
        exc_msg: facts.exception.message ?? '',
      }),
    },
    extra,
  )
}

type Published = Extract<Resolution, { outcome: 'published' }>

const outgoingPayload = ({ value }: OutgoingRecord): string =>
  value === null || !scanJson(value).ok ? 'null' : shownJson(value)

const outgoingType = ({ headers }: OutgoingRecord): string =>
  text(shownBytes(lastHeader(headers, 'type') ?? null) ?? '')

/** What a dry run would publish. Its id is not shown: it is minted only when it is published. */
export const dryRunText = ({ record }: Published, extra: string | null): string =>
  withExtra(
    {
      topic: text(record.topic),
      type_: outgoingType(record),
      payload: outgoingPayload(record),
      key: text(shownBytes(record.key)),
      headers: headersText(record.headers, ['type', 'event_id']),
    },
    extra,
  )

/** What is published, or would be: *PublishableEventData*. */
export const publishableText = ({ record }: Published, extra: string | null): string =>
  withExtra(
    {
      headers: headersText(record.headers, ['type', 'event_id', 'correlation_id']),
      topic: text(record.topic),
      type_: outgoingType(record),
      payload: outgoingPayload(record),
      key: text(shownBytes(record.key)),
    },
    extra,
  )

/** What an event's detail adds. */
interface Seen {
  readonly detail: EventDetail
  /** Whether a value that is no JSON is shown too. */
  readonly withValue: boolean
  /** The size of a value that was left out; null when none was. */
  readonly omittedBytes?: number | null
  /** What it became meanwhile; left out, it is as it was read. */
  readonly state?: string
  /** What was found besides, when it was processed. */
  readonly warnings?: readonly string[]
}

/** The extra member: where the event came from and how it stands, for operators. */
function extraText(
  event: StoredEvent,
  { detail, withValue, omittedBytes = null, state, warnings = [] }: Seen,
): string {
  const { facts, order, value } = event
  const later = detail.hasLaterSameKey ? ['later_same_key'] : []
  return text({
    letter_id: event.rowKey,
    dlq_id: event.dlqId,
    state: state ?? stateName(event.state),
    topic: order.topic,
    partition: order.partition,
    offset: String(order.offset),
    timestamp: recordTime(event.timestampMs),
    family: facts.family,
    attempts: event.attempts,
    attempts_reported: facts.attemptsReported,
    chain: detail.chain.map(linkView),
    reasons: facts.reasons,
    warnings: [...new Set([...facts.warnings, ...warnings, ...later])],
    ...(omittedBytes === null ? {} : { value_omitted_bytes: omittedBytes }),
    ...(withValue && value !== null && facts.valueForm !== 'json' ? { value_base64: base64(value) } : {}),
  })
}

const linkView = (link: ChainLink) => ({
  dlq_id: link.dlqId,
  topic: link.topic,
  partition: link.partition,
  offset: String(link.recordOffset),
  timestamp: recordTime(link.recordTs),
  exc_class: link.facts.exception.class ?? '',
  exc_msg: link.facts.exception.message ?? '',
  sent: link.sent === null ? null : sentView(link.sent),
})

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

/** When it is asked for; and always where an event cannot be published as it is, because the reasons are there. */
const isShownInDetail = ({ facts }: StoredEvent, wanted: boolean): boolean =>
  wanted || facts.reasons.length > 0

/** A part of a queue, each event in the shape of `textOf`. */
export async function previewAnswer(
  { reader, settings }: KafkaCalls,
  part: Omit<QueuePart, 'maxBytes'>,
  wanted: boolean,
  textOf: (event: StoredEvent, extra: string | null) => string,
): Promise<Answer> {
  const { events, details, omittedBytes, truncated } = await reader.preview(
    { ...part, maxBytes: settings.previewMaxBytes },
    (event) => isShownInDetail(event, wanted),
  )
  const texts = events.map((event, index) => {
    const detail = details[index] ?? null
    return textOf(event, detail && extraText(event, { detail, withValue: wanted, omittedBytes }))
  })
  return json(`[${texts.join(',')}]`, truncated ? { 'Bartleby-Truncated': 'true' } : {})
}

/** The extra member of an event that was published, or would be. */
export async function extraOfResolution(
  { reader }: KafkaCalls,
  { event, outcome, warnings }: Resolution,
  { wanted, isDryRun }: { readonly wanted: boolean; readonly isDryRun: boolean },
): Promise<string | null> {
  if (!isShownInDetail(event, wanted)) return null
  const state = isDryRun ? stateName(event.state) : outcome
  try {
    return extraText(event, { detail: await reader.detail(event), withValue: wanted, state, warnings })
  } catch (error) {
    // What was published was published: that its past cannot be read now must not look like a failure.
    if (isDryRun) throw error
    return null
  }
}

/** What was done, or would be, and what is odd about it. */
export const outcomeHeaders = ({ outcome, warnings }: Resolution): Answer['headers'] => ({
  'Bartleby-Outcome': outcome,
  ...(warnings.length === 0 ? {} : { 'Bartleby-Warnings': warnings.join(',') }),
})
