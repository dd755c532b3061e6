/** Kafka as the office API shows it: for those who look after it, in the words of that API. */
import { base64 } from '../../core/content.ts'
import { formatMicros } from '../../core/timestamp.ts'
import type { RawHeader } from '../../outgoing/kafka/record.ts'
import { type StoredEvent, stateName } from './event.ts'
import { type IntakeStanding, lagOf, type PartitionStanding } from './intake/standing.ts'
import type { ChainLink, EventDetail } from './queue-reader.ts'
import { recordTime } from './routes/views.ts'
import type { KafkaService } from './settings/schema.ts'
import type { KafkaSettings } from './settings/settings.ts'
import { shownBytes } from './wire/bytes.ts'

/** The services that are listed, and how intake stands. */
export const overviewOnWire = (settings: KafkaSettings, standing: IntakeStanding) => ({
  enabled: true,
  groupId: settings.groupId,
  acceptUnlistedServices: settings.acceptUnlistedServices,
  services: [...settings.services.values()].map(serviceOnWire),
  dlqTopics: settings.dlqTopics,
  intake: {
    state: standing.state,
    sinceUtc: formatMicros(standing.since),
    troubles: standing.troubles,
    missingTopics: standing.missingTopics,
    partitions: standing.partitions.map(partitionOnWire),
  },
})

const serviceOnWire = (service: KafkaService) => ({
  name: service.name,
  dlqTopic: service.dlqTopic,
  retryTopic: service.retryTopic,
  profile: service.profile,
  aliases: service.aliases,
  originalTopics: service.originalTopics,
  types: service.types,
})

/** Offsets are texts: JSON has no 64-bit integers. */
const partitionOnWire = ({ topic, partition, committed, end, trouble }: PartitionStanding) => ({
  ...{ topic, partition, committed: offsetOnWire(committed), end: offsetOnWire(end) },
  ...{ lag: offsetOnWire(lagOf({ committed, end })), trouble },
})

const offsetOnWire = (offset: bigint | null): string | null => (offset === null ? null : String(offset))

/** One event with everything on file about it, and its bytes. */
export const eventOnWire = (event: StoredEvent, detail: EventDetail) => {
  const { facts, order } = event
  return {
    ...placeOnWire(event),
    type: facts.type,
    topic: order.topic,
    partition: order.partition,
    offset: String(order.offset),
    timestampUtc: recordTime(event.timestampMs),
    key: shownBytes(event.key),
    keyBase64: base64(event.key),
    valueBase64: base64(event.value),
    editedValueBase64: base64(event.editedValue),
    valueForm: facts.valueForm,
    headers: event.headers.map(headerOnWire),
    correlationId: facts.correlationId,
    mintedCorrelationId: facts.mintedCorrelationId,
    originalEventId: facts.originalEventId,
    eventId: event.eventId,
    exception: facts.exception,
    family: facts.family,
    origin: facts.origin,
    firstOrigin: facts.firstOrigin ?? null,
    attempts: event.attempts,
    attemptsReported: facts.attemptsReported,
    duplicateOf: facts.duplicateOf ?? null,
    reasons: facts.reasons,
    warnings: detail.hasLaterSameKey ? [...new Set([...facts.warnings, 'later_same_key'])] : facts.warnings,
    chain: detail.chain.map(linkOnWire),
  }
}

/** Which letter it is, and where it stands. */
export const placeOnWire = (event: StoredEvent) => ({
  dlqId: event.dlqId,
  rowKey: event.rowKey,
  state: stateName(event.state),
  service: event.service,
  originalTopic: event.originalTopic,
})

const headerOnWire = ({ name, value }: RawHeader) => ({
  name: shownBytes(name),
  value: shownBytes(value),
  valueBase64: base64(value),
})

const linkOnWire = ({ sent, ...link }: ChainLink) => ({
  dlqId: link.dlqId,
  topic: link.topic,
  partition: link.partition,
  offset: String(link.recordOffset),
  timestampUtc: recordTime(link.recordTs),
  exception: link.facts.exception,
  supersededAtUtc: formatMicros(link.supersededAt),
  sent:
    sent === null
      ? null
      : {
          eventId: sent.eventId,
          topic: sent.target,
          partition: sent.publishedPartition,
          offset: offsetOnWire(sent.publishedOffset),
          outcome: sent.outcome,
          resends: sent.resends,
          actor: sent.actor,
          requestId: sent.requestId,
          sentAtUtc: formatMicros(sent.madeAt),
        },
})
