/**
 * What becomes of an event if it is processed now: its processor decides, the record is made, the guard looks at it. The same for a
 * dry run and for the real thing. Writes nothing.
 */
import { randomUUID } from 'node:crypto'
import {
  type EventId,
  eventId,
  type OutgoingRecord,
  type Reason,
  type StoredEvent,
  type Warning,
} from '../event.ts'
import { hasLaterSameKey } from '../later-same-key.ts'
import type { Change, Override } from '../ports.ts'
import { isPassageTopic, type KafkaSettings, serviceNamed } from '../settings.ts'
import type { Errand } from './errand.ts'
import { guard } from './guard.ts'
import type { Obstacle } from './obstacle.ts'
import type { ReturnParts } from './parts.ts'
import { type Rendering, renderRecord, topicOf } from './render.ts'

export type Prepared =
  | {
      readonly outcome: 'publish'
      readonly eventId: EventId
      readonly record: OutgoingRecord
      readonly warnings: readonly Warning[]
    }
  | { readonly outcome: 'discard'; readonly reason: string | null; readonly warnings: readonly Warning[] }
  | { readonly outcome: 'refused'; readonly obstacle: Obstacle }

const UNCHANGED: Change = {}

/** Decides about an event. */
export async function prepare(parts: ReturnParts, event: StoredEvent, errand: Errand): Promise<Prepared> {
  const { override, mintCorrelationId } = errand
  const edited = errand.edit ?? event.editedValue
  const decision =
    override !== null || edited !== null
      ? ({ action: 'publish', change: UNCHANGED } as const)
      : await parts.processors.decide(event)
  switch (decision.action) {
    case 'failed':
      return refused({ why: 'processor_failed', event, message: decision.message })
    case 'timeout':
      return refused({ why: 'processor_timeout', event, message: decision.message })
    case 'discard':
      if (!errand.mayDiscard) return refused({ why: 'processor_discards' })
      return { outcome: 'discard', reason: decision.reason, warnings: event.facts.warnings }
    case 'publish': {
      const minted = eventId(randomUUID())
      const { change } = decision
      return rendered(parts, event, { change, override, edited, mintCorrelationId, eventId: minted })
    }
  }
}

async function rendered(parts: ReturnParts, event: StoredEvent, rendering: Rendering): Promise<Prepared> {
  const { db, settings } = parts
  const service = serviceNamed(settings, event.service)
  if (service === null) return refused({ why: 'guarded', event, reasons: withoutService(event) })
  const record = renderRecord(event, service, rendering)
  const reasons = isBatch(event, record) ? (['batch_too_large'] as const) : guard(record, service, settings)
  if (reasons.length > 0) return refused(obstacleOf(event, rendering, reasons, settings))
  const isOutrun = await db.session('kafka.laterSameKey', (session) => hasLaterSameKey(session, event))
  if (isOutrun && settings.onLaterSameKey === 'refuse') {
    return refused({ why: 'guarded', event, reasons: ['later_same_key'] })
  }
  const warnings = withLater(event.facts.warnings, isOutrun)
  return { outcome: 'publish', eventId: rendering.eventId, record, warnings }
}

/** Whether what goes out is a batch that was not unpacked. Whatever somebody made of it is a record. */
const isBatch = ({ facts, value }: StoredEvent, record: OutgoingRecord): boolean =>
  facts.packed !== undefined && record.value === value

/** The warnings of an event, with the one that time brings. */
export const withLater = (warnings: readonly Warning[], isOutrun: boolean): readonly Warning[] =>
  isOutrun ? [...warnings, 'later_same_key'] : warnings

const refused = (obstacle: Obstacle): Prepared => ({ outcome: 'refused', obstacle })

/** Nothing can be sent to a service that nobody knows; what else is wrong was seen when the record came. */
export const withoutService = ({ facts: { reasons } }: StoredEvent): readonly Reason[] =>
  reasons.includes('service_unknown') ? reasons : ['service_unknown', ...reasons]

function obstacleOf(
  event: StoredEvent,
  rendering: Rendering,
  reasons: readonly Reason[],
  settings: KafkaSettings,
): Obstacle {
  const { override } = rendering
  if (override !== null) return { why: 'override_guarded', given: givenIn(override, reasons), reasons }
  const topic = topicOf(event, rendering)
  const isPassage = topic !== null && isPassageTopic(settings, Buffer.from(topic).toString())
  return isPassage && reasons.some((reason) => OF_TOPICS.includes(reason))
    ? { why: 'override_guarded', given: {}, reasons }
    : { why: 'guarded', event, reasons }
}

const OF_TOPICS: readonly Reason[] = ['original_topic_invalid', 'target_invalid']

/** Values that nobody can read are not worth reading here either. */
const UNREADABLE: readonly Reason[] = ['value_not_json', 'value_unreadable_for_consumer', 'too_large']

/** The override as it was given. Its numbers may lose digits here: this goes into an error, and nowhere else. */
function givenIn({ topic, type, key, value }: Override, reasons: readonly Reason[]): object {
  const isReadable = !reasons.some((reason) => UNREADABLE.includes(reason))
  return { topic, type_: type, key, payload: isReadable ? payloadOf(value) : null }
}

function payloadOf(value: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(value).toString())
  } catch {
    // With bare NaN it is JSON to consumers, and not to us.
    return null
  }
}
