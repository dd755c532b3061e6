/**
 * One attempt to send an event back. Nobody waits here.
 *
 *   claim ──► prepare ──► intend ──► publish ──► settle
 *     │          ├──► discard     a durable mark     └──► published, pending again, or uncertain
 *     │          └──► release                        ▲
 *     └──► what is uncertain is sent again as it was ┘
 *
 * Preparing writes nothing, and is the same in a dry run: processor, record, guard. An uncertain event goes out again under the same id and
 * in the same bytes, so that consumers can drop the copy.
 */
import { randomUUID } from 'node:crypto'
import { inOffice } from '../../../letters/work.ts'
import type { OutgoingRecord } from '../../../outgoing/kafka/record.ts'
import type { Session } from '../../../store/database.ts'
import { type EventId, eventId, type Reason, STATE, type Warning } from '../event.ts'
import type { Change } from '../processors/processors.ts'
import type { KafkaService } from '../settings/schema.ts'
import { isPassageTopic, type KafkaSettings, serviceNamed } from '../settings/settings.ts'
import { hasLaterSameKey, type StoredEvent } from '../stored-event.ts'
import { type Claim, claimEvent, discardEvent, lockClaim, note, noteOf, release } from './claim.ts'
import { guard } from './guard.ts'
import { intend, intendAgain, publish, sentRecord } from './publish.ts'
import { type Rendering, renderRecord, topicOf } from './render.ts'
import { type Again, locate, outOfTurn, peek } from './service-queue.ts'
import type { Obstacle, ReturnParts, Target, Terms } from './terms.ts'

/** `live` holds the token of its claim meanwhile. */
export async function attempt(
  parts: ReturnParts,
  live: Set<string>,
  target: Target,
  terms: Terms,
): Promise<Ended | Again> {
  const token = randomUUID()
  live.add(token)
  try {
    const taken = await take(parts, token, target, terms)
    if (!('claim' in taken)) return taken
    const { claim, again } = taken
    return again === null ? await proceed(parts, claim) : await send(parts, claim, again, true)
  } finally {
    live.delete(token)
  }
}

/** `again` is on file, to be sent once more. */
type Taken = Readonly<{ claim: Claim; again: Ready | null }>

function take(
  parts: ReturnParts,
  token: string,
  target: Target,
  terms: Terms,
): Promise<Taken | Obstacle | Again> {
  return inOffice(parts.db, parts.clock, 'kafka.claim', async (work): Promise<Taken | Obstacle | Again> => {
    const { tx, now } = work
    const event = await locate(tx, target, now)
    if (!('letterId' in event)) return event
    const { letterId, service, dlqId, eventId } = event
    const claim: Claim = { event, token, terms }
    if (event.state !== STATE.uncertain) {
      const obstacle = await outOfTurn(tx, target, event)
      if (obstacle !== null) return obstacle
      await claimEvent(work, claim, parts, { state: STATE.claimed, eventId })
      return { claim, again: null }
    }
    const again = await prepareAgain(parts, tx, event, terms)
    if (!('why' in again)) {
      await intendAgain(parts, work, { claim, ...again, isResend: true })
      return { claim, again }
    }
    if (again.why === 'guarded') {
      const held = await lockClaim(tx, letterId)
      if (held !== null) await note(work, held, noteOf(again, terms.caller, dlqId))
      work.afterCommit(() => parts.listener?.trouble?.(service, 'refused'))
    }
    return again
  })
}

async function proceed(parts: ReturnParts, claim: Claim): Promise<Ended | Again> {
  const { event, terms } = claim
  const prepared = await prepare(parts, event, terms).catch(async (error: unknown) => {
    await release(parts, claim, null).catch((second: unknown) =>
      parts.log.warn(
        { err: second, letterId: String(event.letterId) },
        'a claimed event could not be given back; it is free when its lease is over',
      ),
    )
    throw error
  })
  if ('why' in prepared) {
    await release(parts, claim, prepared)
    return prepared
  }
  const isOurs =
    prepared.outcome === 'discarded'
      ? await discardClaimed(parts, claim, prepared.reason)
      : await intend(parts, { claim, ...prepared, isResend: false })
  if (!isOurs) return { again: 'lost', by: event }
  return prepared.outcome === 'discarded' ? prepared : send(parts, claim, prepared, false)
}

async function send(parts: ReturnParts, claim: Claim, ready: Ready, isResend: boolean): Promise<Ended> {
  const obstacle = await publish(parts, { claim, ...ready, isResend })
  return obstacle ?? { outcome: 'published', event: claim.event, ...ready }
}

/** False when the claim is gone. */
function discardClaimed(
  parts: ReturnParts,
  { event, token, terms: { caller } }: Claim,
  reason: string | null,
): Promise<boolean> {
  return inOffice(parts.db, parts.clock, 'kafka.discard', async (work) => {
    const held = await lockClaim(work.tx, event.letterId)
    if (held?.claim !== token) return false
    await discardEvent(parts, work, event, 'processor', caller, reason)
    return true
  })
}

export interface Ready {
  readonly eventId: EventId
  readonly record: OutgoingRecord
  readonly warnings: readonly Warning[]
}

/** In a dry run the id is of no use. */
export type Resolution =
  | (Ready & { readonly outcome: 'published'; readonly event: StoredEvent })
  | {
      readonly outcome: 'discarded'
      readonly event: StoredEvent
      readonly reason: string | null
      readonly warnings: readonly Warning[]
    }

export type Ended = Resolution | Obstacle

const UNCHANGED: Change = {}

/** How the attempt would end if Kafka took the record. */
async function prepare(parts: ReturnParts, event: StoredEvent, terms: Terms): Promise<Ended> {
  const { override, mintCorrelationId } = terms
  const edited = terms.edit ?? event.editedValue
  const decision =
    override !== null || edited !== null
      ? ({ action: 'publish', change: UNCHANGED } as const)
      : await parts.processors.decide(event)
  switch (decision.action) {
    case 'failed':
      return { why: 'processor_failed', event, message: decision.message }
    case 'timeout':
      return { why: 'processor_timeout', event, message: decision.message }
    case 'discard':
      if (!terms.mayDiscard) return { why: 'processor_discards' }
      return { outcome: 'discarded', event, reason: decision.reason, warnings: event.facts.warnings }
    case 'publish': {
      const minted = eventId(randomUUID())
      const rendering = { change: decision.change, override, edited, mintCorrelationId, eventId: minted }
      const judged = await judge(parts, event, {
        isNew: true,
        record: async (service) => renderRecord(event, service, rendering),
        read: (look) => parts.db.session('kafka.laterSameKey', look),
      })
      return 'reasons' in judged
        ? obstacleOf(event, rendering, judged.reasons, parts.settings)
        : { outcome: 'published', event, eventId: minted, ...judged }
    }
  }
}

/** The record of an uncertain event as it was sent, or what is in the way of sending it again. */
async function prepareAgain(
  parts: ReturnParts,
  session: Session,
  event: StoredEvent,
  terms: Terms,
): Promise<Ready | Obstacle> {
  const { dlqId, eventId } = event
  if (eventId === null) throw new Error(`letter ${event.letterId} is uncertain, and nothing was sent`)
  // Nobody shall believe that an override was used.
  if (!terms.resend || terms.override !== null) return { why: 'uncertain', dlqId, eventId }
  const judged = await judge(parts, event, {
    isNew: false,
    record: () => sentRecord(session, event, eventId),
    read: (look) => look(session),
  })
  return 'reasons' in judged ? { why: 'guarded', event, reasons: judged.reasons } : { eventId, ...judged }
}

/** The same code up to and including the guard, without taking or writing anything. */
export async function rehearse(parts: ReturnParts, target: Target, terms: Terms): Promise<Ended> {
  const seen = await parts.db.session('kafka.rehearse', async (session): Promise<StoredEvent | Ended> => {
    const event = await peek(session, target)
    if ('why' in event) return event
    if (event.state !== STATE.uncertain) return (await outOfTurn(session, target, event)) ?? event
    const again = await prepareAgain(parts, session, event, terms)
    return 'why' in again ? again : { outcome: 'published', event, ...again }
  })
  return 'letterId' in seen ? prepare(parts, seen, terms) : seen
}

/** Why the record must not leave, or what is odd about it. */
async function judge(
  { settings }: ReturnParts,
  event: StoredEvent,
  how: {
    /** Never sent before, so that it is known who made its value. */
    readonly isNew: boolean
    readonly record: (service: KafkaService) => Promise<OutgoingRecord>
    readonly read: (look: (session: Session) => Promise<boolean>) => Promise<boolean>
  },
): Promise<Omit<Ready, 'eventId'> | { readonly reasons: readonly Reason[] }> {
  const { warnings, reasons: known } = event.facts
  const service = serviceNamed(settings, event.service)
  // An unknown service has no target; what else is wrong was seen at intake.
  if (service === null) {
    return { reasons: known.includes('service_unknown') ? known : ['service_unknown', ...known] }
  }
  const record = await how.record(service)
  if (how.isNew && isBatch(event, record)) return { reasons: ['batch_too_large'] }
  const reasons = guard(record, service, settings)
  if (reasons.length > 0) return { reasons }
  const isOutrun = await how.read((session) => hasLaterSameKey(session, event))
  if (isOutrun && settings.onLaterSameKey === 'refuse') return { reasons: ['later_same_key'] }
  return { record, warnings: isOutrun ? [...warnings, 'later_same_key'] : warnings }
}

/** A batch that nobody unpacked or edited. */
const isBatch = ({ facts, value }: StoredEvent, record: OutgoingRecord): boolean =>
  facts.packed !== undefined && record.value === value

function obstacleOf(
  event: StoredEvent,
  rendering: Rendering,
  reasons: readonly Reason[],
  settings: KafkaSettings,
): Obstacle {
  const { override } = rendering
  // An unknown service and a later letter are no fault of what was given.
  const isOfEvent = reasons.includes('service_unknown') || reasons.includes('later_same_key')
  if (isOfEvent) return { why: 'guarded', event, reasons }
  if (override !== null) return { why: 'override_guarded', reasons }
  const topic = topicOf(event, rendering)
  const isPassage = topic !== null && isPassageTopic(settings, Buffer.from(topic).toString())
  return isPassage && reasons.some((reason) => OF_TOPICS.includes(reason))
    ? { why: 'override_guarded', reasons }
    : { why: 'guarded', event, reasons }
}

const OF_TOPICS: readonly Reason[] = ['original_topic_invalid', 'target_invalid']
