/**
 * The last look at a record before it leaves, in dry runs too. A bad record on a retry topic stops a hexkit service at every start until
 * somebody moves its offset, or is silently dropped: neither can be undone.
 */
import { scanJson } from '../../../core/json/scan.ts'
import { isTopicName, type OutgoingRecord } from '../../../outgoing/kafka/record.ts'
import { NamedHeaders } from '../dialects/named-headers.ts'
import type { Reason } from '../event.ts'
import { type KafkaService, ORIGINAL } from '../settings/schema.ts'
import { isAllowed, isPassageTopic, isUuidV4, type KafkaSettings } from '../settings/settings.ts'
import { isAsciiText, latin1, recordSize } from '../wire/bytes.ts'
import { isReadableForPython } from '../wire/json.ts'

const HEXKIT_HEADERS: ReadonlySet<string> = new Set(['original_topic', 'type', 'event_id', 'correlation_id'])

export function guard(
  record: OutgoingRecord,
  service: KafkaService,
  settings: KafkaSettings,
): readonly Reason[] {
  const reasons: Reason[] =
    service.profile === 'hexkit'
      ? hexkitReasons(record, service, settings)
      : genericReasons(record, service, settings)
  // With compression only the broker knows.
  if (settings.compression === 'none' && recordSize(record) > settings.maxMessageBytes)
    reasons.push('too_large')
  return reasons
}

function hexkitReasons(record: OutgoingRecord, service: KafkaService, settings: KafkaSettings): Reason[] {
  const reasons: Reason[] = [...valueReasons(record.value)]
  if (record.key === null) reasons.push('key_null')
  else if (!isAsciiText(record.key)) reasons.push('key_not_ascii')

  const headers = new NamedHeaders(record.headers)
  const type = headers.filled('type')
  if (type === null) reasons.push('type_missing')
  else if (!isAsciiText(type)) reasons.push('type_not_ascii')
  else if (!isAllowed(service.types, latin1(type))) reasons.push('type_not_allowed')

  const topic = headers.filled('original_topic')
  if (topic === null) reasons.push('original_topic_missing')
  else if (!canBeOriginal(latin1(topic), service, settings)) reasons.push('original_topic_invalid')
  else if (!isAllowed(service.originalTopics, latin1(topic))) reasons.push('original_topic_not_allowed')

  const correlationId = headers.filled('correlation_id')
  if (correlationId === null) reasons.push('correlation_id_missing')
  else if (!isUuidV4(latin1(correlationId))) reasons.push('correlation_id_invalid')
  const eventId = headers.filled('event_id')
  if (eventId === null || !isUuidV4(latin1(eventId))) reasons.push('event_id_invalid')

  for (const name of headers.names) {
    if (HEXKIT_HEADERS.has(name)) continue
    reasons.push('header_not_allowed')
    break
  }
  if (headers.repeated.size > 0) reasons.push('header_duplicate')
  if (record.topic !== service.retryTopic || !isTopicName(record.topic)) reasons.push('target_invalid')
  return reasons
}

function valueReasons(value: Uint8Array | null): readonly Reason[] {
  if (value === null) return ['value_null']
  const scan = scanJson(value)
  if (!scan.ok) {
    if (scan.why === 'not_utf8') return ['value_not_ascii']
    return isAsciiText(value) ? ['value_not_json'] : ['value_not_ascii', 'value_not_json']
  }
  const reasons: Reason[] = scan.ascii ? [] : ['value_not_ascii']
  if (!isReadableForPython(scan)) reasons.push('value_unreadable_for_consumer')
  return reasons
}

/** A consumer drops events that claim to come from its retry topic; none comes from a DLQ topic. */
const canBeOriginal = (topic: string, service: KafkaService, settings: KafkaSettings): boolean =>
  isTopicName(topic) && topic !== service.retryTopic && !isPassageTopic(settings, topic)

function genericReasons(record: OutgoingRecord, service: KafkaService, settings: KafkaSettings): Reason[] {
  if (service.retryTopic !== ORIGINAL) {
    return record.topic === service.retryTopic && isTopicName(record.topic) ? [] : ['target_invalid']
  }
  if (!isTopicName(record.topic) || isPassageTopic(settings, record.topic)) return ['target_invalid']
  // Here an empty list allows nothing: the target comes from a record.
  const listed = service.originalTopics.length > 0 && isAllowed(service.originalTopics, record.topic)
  return listed ? [] : ['original_topic_not_allowed']
}
