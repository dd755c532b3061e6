/** The record that an event becomes when it is sent back. Pure; the guard decides whether it may leave. */
import { isUtf8 } from 'node:buffer'
import type { OutgoingRecord, RawHeader } from '../../../outgoing/kafka/record.ts'
import { isStrippedHeader } from '../dialects/families.ts'
import { type EventId, UNKNOWN } from '../event.ts'
import type { Change } from '../processors/processors.ts'
import { type KafkaService, ORIGINAL } from '../settings/schema.ts'
import type { StoredEvent } from '../stored-event.ts'
import { lastHeader, utf8 } from '../wire/bytes.ts'
import { escapeNonAscii } from '../wire/json.ts'
import type { Override } from './terms.ts'

export interface Rendering {
  /** By a processor. */
  readonly change: Change
  /** Goes before `change`. */
  readonly override: Override | null
  /** By an operator. */
  readonly edited: Uint8Array | null
  /** Whether the id made at intake replaces one that no consumer can read. */
  readonly mintCorrelationId: boolean
  readonly eventId: EventId
}

type Renderable = Pick<StoredEvent, 'originalTopic' | 'key' | 'value' | 'headers' | 'facts'>
export type Ways = Pick<
  KafkaService,
  'profile' | 'keyFormat' | 'retryTopic' | 'originalTopics' | 'stripHeaders'
>

/** What the event lacks is left out. */
export function renderRecord(event: Renderable, service: Ways, rendering: Rendering): OutgoingRecord {
  const target = service.retryTopic === ORIGINAL ? topicOf(event, rendering) : Buffer.from(service.retryTopic)
  return {
    topic: target === null ? '' : utf8(target),
    key: outgoingKey(event, service, rendering),
    value: outgoingValue(event, service, rendering),
    headers:
      service.profile === 'hexkit'
        ? hexkitHeaders(event, rendering)
        : genericHeaders(event, service, rendering),
  }
}

/** The original topic as it would be sent, allowed or not. */
export function topicOf(
  { originalTopic, headers }: Renderable,
  { change, override }: Pick<Rendering, 'change' | 'override'>,
): Uint8Array | null {
  const given = override?.topic ?? change.topic
  if (given !== undefined) return Buffer.from(given)
  if (originalTopic !== UNKNOWN) return Buffer.from(originalTopic)
  return lastHeader(headers, 'original_topic') ?? null
}

function outgoingKey(event: Renderable, service: Ways, { change, override }: Rendering): Uint8Array | null {
  const given = override?.key ?? change.key
  if (given !== undefined) return Buffer.from(given)
  const { originalKey } = event.facts
  return service.keyFormat === 'uber' && originalKey !== undefined
    ? Buffer.from(originalKey, 'base64')
    : event.key
}

/** A processor gives the bytes that leave. Other values may be JSON in UTF-8, which hexkit's consumers cannot read. */
function outgoingValue(
  event: Renderable,
  { profile }: Ways,
  { change, override, edited }: Rendering,
): Uint8Array | null {
  const given = override?.value ?? edited
  if (given === null && change.value !== undefined) return change.value
  const value = given ?? event.value
  // Without UTF-8 it is for the guard: escaped, it would be something else.
  return value === null || profile === 'generic' || !isUtf8(value) ? value : escapeNonAscii(value)
}

function hexkitHeaders(event: Renderable, rendering: Rendering): RawHeader[] {
  const type = typeOf(event, rendering)
  return [
    header('original_topic', topicOf(event, rendering)),
    header('type', type === '' ? null : Buffer.from(type)),
    header('event_id', Buffer.from(rendering.eventId)),
    header('correlation_id', correlationIdOf(event, rendering)),
  ].filter(({ value }) => value !== null)
}

const header = (name: string, value: Uint8Array | null): RawHeader => ({ name: Buffer.from(name), value })

const typeOf = ({ facts }: Renderable, { change, override }: Rendering): string =>
  override?.type ?? change.type ?? facts.type

function correlationIdOf({ facts }: Renderable, { change, mintCorrelationId }: Rendering): Uint8Array | null {
  const { correlationId, mintedCorrelationId } = facts
  const own = mintCorrelationId
    ? (mintedCorrelationId ?? correlationId)
    : (correlationId ?? mintedCorrelationId)
  const given = change.correlationId ?? own
  return given === null ? null : Buffer.from(given)
}

/** Only values change; no header is added. */
function genericHeaders(
  { headers, facts }: Renderable,
  { stripHeaders }: Ways,
  { change, override }: Rendering,
): RawHeader[] {
  const changed = new Map([
    ['type', override?.type ?? change.type],
    ['correlation_id', change.correlationId],
  ])
  return headers
    .filter(({ name }) => !isStrippedHeader(facts.family, utf8(name), stripHeaders))
    .map((kept) => {
      const value = changed.get(utf8(kept.name))
      return value === undefined ? kept : { ...kept, value: Buffer.from(value) }
    })
}
