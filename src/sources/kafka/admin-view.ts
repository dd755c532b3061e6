/** Kafka as the office API shows it: for each field its description and its origin. */
import { type AnswerFields, answerOf, shapeOf } from '../../api/describe.ts'
import { INTEGER, TEXT, TEXT_OR_NULL, TIME } from '../../api/shapes.ts'
import { base64 } from '../../core/content.ts'
import { formatMicros } from '../../core/timestamp.ts'
import type { RawHeader } from '../../outgoing/kafka/record.ts'
import { STATE_NAMES, stateName } from './event.ts'
import { INTAKE_STATES, type IntakeStatus, lagOf, type PartitionStatus } from './intake/intake-status.ts'
import type { ChainLink, DetailedEvent } from './queue-reader.ts'
import { recordTime, warningsOf } from './routes/views.ts'
import { type KafkaService, PROFILES } from './settings/schema.ts'
import type { KafkaSettings } from './settings/settings.ts'
import type { StoredEvent } from './stored-event.ts'
import { shownBytes } from './wire/bytes.ts'

const TEXTS = { type: 'array', items: TEXT }

/** Texts: JSON has no 64-bit integers. */
const offsetOnWire = (offset: bigint | null): string | null => (offset === null ? null : String(offset))

const SERVICE = {
  name: [TEXT, ({ name }) => name],
  dlqTopic: [TEXT, ({ dlqTopic }) => dlqTopic],
  retryTopic: [
    { ...TEXT, description: '`$original`: the topic that the event came from originally' },
    ({ retryTopic }) => retryTopic,
  ],
  profile: [{ type: 'string', enum: [...PROFILES] }, ({ profile }) => profile],
  aliases: [TEXTS, ({ aliases }) => aliases],
  originalTopics: [TEXTS, ({ originalTopics }) => originalTopics],
  types: [TEXTS, ({ types }) => types],
} satisfies AnswerFields<KafkaService>

const PARTITION = {
  topic: [TEXT, ({ topic }) => topic],
  partition: [INTEGER, ({ partition }) => partition],
  committed: [TEXT_OR_NULL, ({ committed }) => offsetOnWire(committed)],
  end: [TEXT_OR_NULL, ({ end }) => offsetOnWire(end)],
  lag: [TEXT_OR_NULL, (status) => offsetOnWire(lagOf(status))],
  trouble: [TEXT_OR_NULL, ({ trouble }) => trouble],
} satisfies AnswerFields<PartitionStatus>

const INTAKE = {
  state: [{ type: 'string', enum: INTAKE_STATES }, ({ state }) => state],
  sinceUtc: [TIME, ({ since }) => formatMicros(since)],
  troubles: [TEXTS, ({ troubles }) => troubles],
  missingTopics: [TEXTS, ({ missingTopics }) => missingTopics],
  partitions: [
    { type: 'array', description: 'Those that this server reads', items: shapeOf(PARTITION) },
    ({ partitions }) => partitions.map((partition) => answerOf(PARTITION, partition)),
  ],
} satisfies AnswerFields<IntakeStatus>

const OVERVIEW_FIELDS = {
  enabled: [
    {
      type: 'boolean',
      description: 'Whether this server takes in dead events; without, all else is left out',
    },
    () => true,
  ],
  groupId: [TEXT, ({ settings }) => settings.groupId],
  acceptUnlistedServices: [{ type: 'boolean' }, ({ settings }) => settings.acceptUnlistedServices],
  services: [
    { type: 'array', items: shapeOf(SERVICE) },
    ({ settings }) => [...settings.services.values()].map((service) => answerOf(SERVICE, service)),
  ],
  dlqTopics: [
    { ...TEXTS, description: 'Topics that are taken in and belong to no service' },
    ({ settings }) => settings.dlqTopics,
  ],
  intake: [shapeOf(INTAKE), ({ status }) => answerOf(INTAKE, status)],
} satisfies AnswerFields<{ readonly settings: KafkaSettings; readonly status: IntakeStatus }>

export const OVERVIEW = { ...shapeOf(OVERVIEW_FIELDS), required: ['enabled'] }

export const overviewOnWire = (settings: KafkaSettings, status: IntakeStatus) =>
  answerOf(OVERVIEW_FIELDS, { settings, status })

const PLACE = {
  dlqId: [
    { ...TEXT, description: 'The newest of the letter: asked for by an older one, it is another' },
    ({ dlqId }) => dlqId,
  ],
  rowKey: [TEXT, ({ rowKey }) => rowKey],
  state: [{ type: 'string', enum: STATE_NAMES }, ({ state }) => stateName(state)],
  service: [TEXT, ({ service }) => service],
  originalTopic: [TEXT, ({ originalTopic }) => originalTopic],
} satisfies AnswerFields<StoredEvent>

export const PLACED = shapeOf(PLACE)

export const placeOnWire = (event: StoredEvent) => answerOf(PLACE, event)

const HEADER = {
  name: [TEXT, ({ name }) => shownBytes(name)],
  value: [TEXT_OR_NULL, ({ value }) => shownBytes(value)],
  valueBase64: [TEXT_OR_NULL, ({ value }) => base64(value)],
} satisfies AnswerFields<RawHeader>

const EVENT_FIELDS = {
  ...PLACE,
  type: [TEXT, ({ facts }) => facts.type],
  topic: [TEXT, ({ order }) => order.topic],
  partition: [INTEGER, ({ order }) => order.partition],
  offset: [TEXT, ({ order }) => String(order.offset)],
  timestampUtc: [TIME, ({ timestampMs }) => recordTime(timestampMs)],
  key: [TEXT_OR_NULL, ({ key }) => shownBytes(key)],
  keyBase64: [TEXT_OR_NULL, ({ key }) => base64(key)],
  valueBase64: [TEXT_OR_NULL, ({ value }) => base64(value)],
  editedValueBase64: [TEXT_OR_NULL, ({ editedValue }) => base64(editedValue)],
  valueForm: [{ type: 'string', enum: ['json', 'null', 'other'] }, ({ facts }) => facts.valueForm],
  headers: [
    { type: 'array', items: shapeOf(HEADER) },
    ({ headers }) => headers.map((header) => answerOf(HEADER, header)),
  ],
  correlationId: [TEXT_OR_NULL, ({ facts }) => facts.correlationId],
  mintedCorrelationId: [TEXT_OR_NULL, ({ facts }) => facts.mintedCorrelationId],
  originalEventId: [TEXT_OR_NULL, ({ facts }) => facts.originalEventId],
  eventId: [TEXT_OR_NULL, ({ eventId }) => eventId],
  exception: [{ type: 'object' }, ({ facts }) => facts.exception],
  family: [TEXT_OR_NULL, ({ facts }) => facts.family],
  origin: [{ type: 'object' }, ({ facts }) => facts.origin],
  firstOrigin: [{ type: ['object', 'null'] }, ({ facts }) => facts.firstOrigin ?? null],
  attempts: [INTEGER, ({ attempts }) => attempts],
  attemptsReported: [{ type: ['integer', 'null'] }, ({ facts }) => facts.attemptsReported],
  duplicateOf: [TEXT_OR_NULL, ({ facts }) => facts.duplicateOf ?? null],
  reasons: [TEXTS, ({ facts }) => facts.reasons],
  warnings: [TEXTS, (event) => warningsOf(event)],
  chain: [
    { type: 'array', items: { type: 'object' }, description: 'Earlier deaths, the oldest first' },
    ({ chain }) => chain.map(linkOnWire),
  ],
} satisfies AnswerFields<DetailedEvent>

export const EVENT = shapeOf(EVENT_FIELDS)

export const eventOnWire = (event: DetailedEvent) => answerOf(EVENT_FIELDS, event)

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
