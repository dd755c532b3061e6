/**
 * What a record of a DLQ topic means: who failed on it, where, why, and whether it may be published again. Any bytes are legal and nothing
 * throws: what cannot be understood is a reason or a warning.
 */
import { storedText } from '../../../core/content.ts'
import { type JsonScan, scanJson } from '../../../core/json/scan.ts'
import { isTopicName } from '../../../outgoing/kafka/record.ts'
import { type Family, HEXKIT, headerOf, UBER } from '../dialects/families.ts'
import {
  factsInHeaders,
  factsInKey,
  familyOf,
  type HeaderFacts,
  SHORT_TEXT,
} from '../dialects/header-facts.ts'
import { NamedHeaders } from '../dialects/named-headers.ts'
import {
  type EventFacts,
  eventId,
  type Origin,
  type PackedBatch,
  type RawRecord,
  type Reason,
  UNKNOWN,
  type Warning,
} from '../event.ts'
import { renderRecord, type Ways } from '../return/render.ts'
import { type KafkaService, kafkaService, ORIGINAL } from '../settings/schema.ts'
import {
  isAllowed,
  isPassageTopic,
  isUuidV4,
  type KafkaSettings,
  listedService,
  serviceNamed,
} from '../settings/settings.ts'
import { isAsciiText, isText, latin1, recordSize, shownText } from '../wire/bytes.ts'
import { isReadableForPython } from '../wire/json.ts'

const NOTHING: HeaderFacts = { origin: {}, exception: {}, attempts: null }

/** The owner by an operator's word, whatever the record says. */
export interface Assigned {
  readonly service: KafkaService
  /** null: as the record says. */
  readonly originalTopic: string | null
}

/** `mint` makes a UUID v4 for events without a usable correlation id. */
export function readEvent(
  record: RawRecord,
  settings: KafkaSettings,
  mint: () => string,
  assigned: Assigned | null = null,
): EventFacts {
  if (record.packed !== undefined) return factsOfBatch(record, record.packed, settings, mint, assigned)
  const headers = new NamedHeaders(record.headers)
  const family = familyOf(headers)
  const ownId = textOf(headers, 'event_id')
  const isOwnIdValid = ownId !== null && isUuidV4(ownId)
  const oldEventId = ownId === null || isOwnIdValid ? null : readOldEventId(ownId)
  const foreign = family === null || family === HEXKIT ? NOTHING : factsInHeaders(family, headers)
  const found = serviceOf(
    {
      topic: record.topic,
      service: textOf(headers, 'service'),
      serviceInEventId: oldEventId?.service ?? null,
      consumerGroup: foreign.origin.consumerGroup ?? null,
    },
    settings,
  )
  const { service, guessed, owners } =
    assigned === null ? found : { ...found, service: assigned.service, guessed: false }
  const ways = waysOf(service, owners)
  const byKey = ways.keyFormat === 'uber' ? factsInKey(record.key) : null
  const hexkitNames = ways.profile === 'hexkit' || family === HEXKIT
  const stated = joined(hexkitNames ? factsInHeaders(HEXKIT, headers) : NOTHING, byKey ?? foreign)
  const readFrom = hexkitNames ? (oldEventId?.readFrom ?? null) : null
  const origin = withPlace(stated.origin, readFrom)

  const scan = record.value === null ? null : scanJson(record.value)
  const key = stated.originalKey === undefined ? record.key : Buffer.from(stated.originalKey, 'base64')
  const typeBytes = headers.filled('type')
  const type = typeBytes === null ? '' : typeText(typeBytes)
  const correlationId = textOf(headers, 'correlation_id')
  const originalEventId = hexkitNames ? textOf(headers, 'original_event_id', true) : null

  const reasons: Reason[] = []
  const warnings: Warning[] = []
  let mintedCorrelationId: string | null = null
  if (ways.profile === 'hexkit') {
    addValue(reasons, warnings, scan)
    if (key === null) reasons.push('key_null')
    else if (!isAsciiText(key)) reasons.push('key_not_ascii')
    if (typeBytes === null) reasons.push('type_missing')
    else if (!isAsciiText(typeBytes)) reasons.push('type_not_ascii')
  } else if (scan?.ok && scan.nonFinite) warnings.push('non_finite_numbers')
  const originalTopic = originalTopicOf(assigned?.originalTopic ?? origin.topic, ways, settings, reasons)
  if (ways.profile === 'hexkit' && (correlationId === null || !isUuidV4(correlationId))) {
    if (correlationId === null) warnings.push('correlation_id_minted')
    else reasons.push('correlation_id_invalid')
    mintedCorrelationId = mint()
  }
  if (hexkitNames && ownId !== null && oldEventId === null && !isOwnIdValid) {
    warnings.push('event_id_invalid')
  }
  const originalEventIdValid = originalEventId !== null && isUuidV4(originalEventId)
  if (originalEventId !== null && !originalEventIdValid) warnings.push('original_event_id_invalid')
  if (service === null) reasons.push('service_unknown')
  addHeaders(warnings, record, headers, family)
  if (record.timestampMs < 0n) warnings.push('timestamp_missing')
  const facts: EventFacts = {
    service: service?.name ?? UNKNOWN,
    originalTopic,
    type,
    correlationId,
    mintedCorrelationId,
    originalEventId: originalEventIdValid ? originalEventId.toLowerCase() : null,
    readFrom,
    exception: stated.exception,
    family: byKey === null ? (family?.name ?? null) : UBER,
    origin,
    ...(stated.firstOrigin === undefined ? {} : { firstOrigin: stated.firstOrigin }),
    attemptsReported: stated.attempts,
    ...(stated.originalKey === undefined ? {} : { originalKey: stated.originalKey }),
    valueForm: scan === null ? 'null' : scan.ok ? 'json' : 'other',
    reasons,
    warnings,
  }
  if (isTooLarge(record, facts, ways, settings)) {
    if (settings.compression === 'none') reasons.push('too_large')
    else warnings.push('too_large')
  }
  if (guessed) warnings.push('service_guessed')
  return facts
}

/** Escapes make six bytes of a two-byte character and twelve of a four-byte one. */
const GROWTH = 3
/** Upper bounds for the overhead of one field, and of the record. */
const FIELD = 16
const HEAD = 1_024

/** Whether the record would be too large to publish. Nearly all are far below the limit, so an upper bound comes first. */
function isTooLarge(
  record: RawRecord,
  facts: EventFacts,
  ways: Ways,
  { maxMessageBytes }: KafkaSettings,
): boolean {
  let most = HEAD + (record.key?.length ?? 0) + (record.value?.length ?? 0) * GROWTH
  for (const { name, value } of record.headers) most += FIELD + (name.length + (value?.length ?? 0)) * GROWTH
  if (most <= maxMessageBytes) return false
  const rendering = { change: {}, override: null, edited: null, mintCorrelationId: false, eventId: ANY_ID }
  return (
    recordSize(renderRecord({ ...record, originalTopic: facts.originalTopic, facts }, ways, rendering)) >
    maxMessageBytes
  )
}

const ANY_ID = eventId('00000000-0000-4000-8000-000000000000')

/** A batch that was not unpacked tells nothing but its topic. */
function factsOfBatch(
  { topic }: RawRecord,
  packed: PackedBatch,
  settings: KafkaSettings,
  mint: () => string,
  assigned: Assigned | null,
): EventFacts {
  const found = serviceOf({ topic, service: null, serviceInEventId: null, consumerGroup: null }, settings)
  const service = assigned?.service ?? found.service
  const { compression, records, mostBytes } = packed
  return {
    service: service?.name ?? UNKNOWN,
    originalTopic: assigned?.originalTopic ?? UNKNOWN,
    type: '',
    correlationId: null,
    mintedCorrelationId: mint(),
    originalEventId: null,
    readFrom: null,
    exception: {
      class: 'BatchTooLarge',
      message: `a batch of ${records} records, compressed with ${compression}, unpacks to more than ${mostBytes} bytes; the value is the batch as it lies in the topic`,
    },
    family: null,
    origin: {},
    attemptsReported: null,
    valueForm: 'other',
    packed,
    reasons: service === null ? ['batch_too_large', 'service_unknown'] : ['batch_too_large'],
    warnings: service !== null && assigned === null ? ['service_guessed'] : [],
  }
}

const HEXKIT_WAYS: Ways = kafkaService('', { dlq_topic: '', retry_topic: '' })

/** A record of nobody is treated as all owners of its topic agree. */
function waysOf(service: KafkaService | null, owners: readonly KafkaService[]): Ways {
  if (service !== null) return service
  if (owners.length === 0) return HEXKIT_WAYS
  return {
    ...HEXKIT_WAYS,
    profile: owners.every(({ profile }) => profile === 'generic') ? 'generic' : 'hexkit',
    keyFormat: owners.every(({ keyFormat }) => keyFormat === 'uber') ? 'uber' : 'plain',
  }
}

/** The last header of a name; null if absent, null or, unless `evenEmpty`, empty. */
function textOf(headers: NamedHeaders, name: string, evenEmpty = false): string | null {
  const value = headers.value(name)
  return value == null || (value.length === 0 && !evenEmpty) ? null : shownText(value, SHORT_TEXT)
}

/** What is no text gets a character beyond ASCII, so that the guard finds it. */
const typeText = (type: Uint8Array): string =>
  type.length > SHORT_TEXT || isText(type) ? shownText(type, SHORT_TEXT) : storedText(type)

/** hexkit's headers come first; another tool fills the gaps. */
function joined(hexkit: HeaderFacts, other: HeaderFacts): HeaderFacts {
  if (other === NOTHING) return hexkit
  if (hexkit === NOTHING) return other
  // Partition and offset of another topic say nothing about this one.
  const apart = hexkit.origin.topic !== undefined && hexkit.origin.topic !== other.origin.topic
  return {
    ...other,
    origin: apart ? hexkit.origin : { ...other.origin, ...hexkit.origin },
    exception: { ...other.exception, ...hexkit.exception },
  }
}

/** Generations 4 and 5 name the place in the event id; after a failed retry it is one in the retry topic. */
function withPlace(origin: Origin, readFrom: EventFacts['readFrom']): Origin {
  if (readFrom === null || readFrom.topic !== origin.topic) return origin
  return { partition: readFrom.partition, offset: readFrom.offset, ...origin }
}

function addValue(reasons: Reason[], warnings: Warning[], scan: JsonScan | null): void {
  if (scan === null) reasons.push('value_null')
  else if (!scan.ok) reasons.push(scan.why === 'not_utf8' ? 'value_not_utf8' : 'value_not_json')
  else {
    if (!isReadableForPython(scan)) reasons.push('value_unreadable_for_consumer')
    if (!scan.ascii) warnings.push('value_needs_escape')
    if (scan.kind !== 'object') warnings.push('payload_not_object')
    if (scan.nonFinite) warnings.push('non_finite_numbers')
  }
}

/** Where the topic reaches a consumer, or is the target, it must not be one that dead events pass through. Elsewhere it is only a name. */
function originalTopicOf(
  topic: string | undefined,
  { profile, retryTopic, originalTopics }: Ways,
  settings: KafkaSettings,
  reasons: Reason[],
): string {
  const isTarget = retryTopic === ORIGINAL
  const matters = profile === 'hexkit' || isTarget
  if (topic === undefined) {
    if (matters) reasons.push('original_topic_missing')
    return UNKNOWN
  }
  if (!isTopicName(topic) || (matters && isPassageTopic(settings, topic))) {
    if (matters) reasons.push('original_topic_invalid')
    return UNKNOWN
  }
  if (isTarget && !isAllowed(originalTopics, topic)) reasons.push('original_topic_not_allowed')
  return topic
}

/** Other tools write binary, null and repeated headers by design. */
function addHeaders(
  warnings: Warning[],
  record: RawRecord,
  headers: NamedHeaders,
  family: Family | null,
): void {
  const foreign = family === null || family === HEXKIT ? null : family.name
  let isUtf8 = true
  let isNull = false
  for (const { name, value } of record.headers) {
    if (!isText(name)) isUtf8 = false
    if (value !== null && isText(value)) continue
    const known = foreign === null ? undefined : headerOf(foreign, latin1(name))
    if (value === null) isNull ||= known === undefined
    else if (known === undefined || !BINARY.has(known.as)) isUtf8 = false
  }
  if (!isUtf8) warnings.push('header_not_utf8')
  if (isNull) warnings.push('header_null')
  for (const name of headers.repeated) {
    if (headerOf(foreign, name) !== undefined) continue
    warnings.push('header_duplicate')
    break
  }
}

const BINARY: ReadonlySet<string> = new Set(['i32', 'i64', 'big', 'next attempt', 'bytes'])

/** What a record claims. Hostile, and part of a topic name: it counts only as far as the settings allow. */
export interface Claims {
  /** The DLQ topic it was read from. */
  readonly topic: string
  readonly service: string | null
  /** From an event id of generations 4 and 5. */
  readonly serviceInEventId: string | null
  readonly consumerGroup: string | null
}

interface Found {
  readonly service: KafkaService | null
  /** The record did not name it. */
  readonly guessed: boolean
  /** All listed services with this DLQ topic. */
  readonly owners: readonly KafkaService[]
}

/** Null when no claim holds. A record that names a service is never given to another. */
export function serviceOf(claims: Claims, settings: KafkaSettings): Found {
  const owners: KafkaService[] = []
  for (const service of settings.services.values()) {
    if (service.dlqTopic === claims.topic) owners.push(service)
  }
  const named = claims.service ?? claims.serviceInEventId
  if (named !== null) return { service: allowed(named, claims.topic, settings), guessed: false, owners }
  const [only, another] = owners
  if (only !== undefined && another === undefined) return { service: only, guessed: true, owners }
  const group = claims.consumerGroup
  const ofGroup = owners.find(
    ({ name, aliases }) => group === name || (group !== null && aliases.includes(group)),
  )
  return { service: ofGroup ?? null, guessed: ofGroup !== undefined, owners }
}

/** A listed service has one DLQ topic, and no other speaks for it. */
function allowed(name: string, topic: string, settings: KafkaSettings): KafkaService | null {
  const listed = listedService(settings, name)
  if (listed === null) return serviceNamed(settings, name)
  return listed.dlqTopic === topic ? listed : null
}

const OLD = /^([^,]+),(.+),(\d{1,10}),(\d{1,19})$/s
const LARGEST_PARTITION = 2 ** 31 - 1
const LARGEST_OFFSET = 2n ** 63n - 1n

/**
 * hexkit's generations 4 and 5: `service,topic,partition,offset`, where the failed event was read. `readFrom` is null when that is no place
 * in Kafka.
 */
function readOldEventId(text: string) {
  const [, service, topic, partition, offset] = OLD.exec(text) ?? []
  if (service === undefined || topic === undefined || partition === undefined || offset === undefined)
    return null
  const place = { topic, partition: Number(partition), offset: String(BigInt(offset)) }
  const possible =
    isTopicName(topic) && place.partition <= LARGEST_PARTITION && BigInt(offset) <= LARGEST_OFFSET
  return { service, readFrom: possible ? place : null }
}
