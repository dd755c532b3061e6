/**
 * An event in flight: what is sent is on file, durably, before its first byte leaves; then the broker has its say, and what it said
 * is written down. Who lost the claim meanwhile changes nothing of the event: its record came back before we knew that it had
 * arrived, or others took it to be lost.
 */
import { change } from '../../letters/change.ts'
import { replaceEdit } from '../../letters/contents.ts'
import { RETRIED, sentBy } from '../../letters/letter.ts'
import { nameRedrive } from '../../letters/redriven.ts'
import { inOffice, type OfficeWork } from '../../letters/work.ts'
import { type EventId, KAFKA, type OutgoingRecord, STATE } from '../event.ts'
import type { PublishOutcome } from '../ports.ts'
import { SEND } from '../send.ts'
import { type Claim, putPublishing } from './claim.ts'
import type { Errand } from './errand.ts'
import { type Hold, letGo, lockHold } from './hold.ts'
import type { Obstacle } from './obstacle.ts'
import type { ReturnParts } from './parts.ts'
import { keepSend, noteReceipt, noteSendEnd, type Receipt } from './sends.ts'
import { note, told } from './trail.ts'

export interface Flight {
  readonly claim: Claim
  readonly eventId: EventId
  readonly record: OutgoingRecord
  /** Whether it was sent before, and nobody knows with what end. */
  readonly isResend: boolean
}

/** Writes down what is about to be sent; false when the claim is gone, and nothing may be sent. */
export function intend(parts: ReturnParts, flight: Flight, errand: Errand): Promise<boolean> {
  const { claim, eventId, record } = flight
  const { caller, edit, redrive } = errand
  const { letterId } = claim.event
  return inOffice(parts.db, parts.clock, 'kafka.intend', async ({ tx, now }) => {
    const hold = await lockHold(tx, letterId)
    if (hold === null || hold.claim !== claim.token) return false
    if (edit !== null) await replaceEdit(tx, letterId, edit)
    await nameRedrive(tx, letterId, redrive)
    await keepSend(tx, now, claim.event, { eventId, record, caller })
    await putPublishing(tx, now, claim, eventId, parts)
    return true
  })
}

/** Sends it, and writes down what came of it; gives what was in the way, or null when it is published. */
export async function fly(parts: ReturnParts, flight: Flight, errand: Errand): Promise<Obstacle | null> {
  const outcome = await published(parts, flight.record)
  switch (outcome.outcome) {
    case 'published':
      await settled(parts, flight, errand, outcome)
      return null
    case 'failed':
      await failed(parts, flight, errand, outcome)
      return outcome.why === 'too_large'
        ? { why: 'guarded', event: flight.claim.event, reasons: ['too_large'] }
        : { why: 'kafka_away', message: outcome.message }
    case 'uncertain':
      await uncertain(parts, flight, errand, outcome.message)
      return { why: 'doubt', eventId: flight.eventId, message: outcome.message }
  }
}

async function published({ publisher, log }: ReturnParts, record: OutgoingRecord): Promise<PublishOutcome> {
  try {
    return await publisher.publish(record)
  } catch (error) {
    // It never throws. If it does, nobody knows how far it came.
    log.error({ err: error, topic: record.topic }, 'publishing broke off')
    return { outcome: 'uncertain', message: 'publishing broke off' }
  }
}

/** Whether the event is still what this flight made it. */
const isOurs = (hold: Hold | null, { claim, eventId }: Flight): hold is Hold =>
  hold !== null && hold.claim === claim.token && hold.eventId === eventId

/** The broker has it: the letter is resolved, with its receipt, in one transaction. */
function settled(parts: ReturnParts, flight: Flight, errand: Errand, receipt: Receipt): Promise<void> {
  const { claim, eventId, record } = flight
  const { letterId, dlqId } = claim.event
  const { caller, notes, redrive } = errand
  return inOffice(parts.db, parts.clock, 'kafka.settle', async (work) => {
    const { tx, now } = work
    const hold = await lockHold(tx, letterId)
    await noteReceipt(tx, now, eventId, receipt)
    work.afterCommit(() => count(parts, flight))
    // When others gave us up, we still know better than they did.
    const isGivenUp = hold?.state === STATE.uncertain && hold.eventId === eventId
    if (!isOurs(hold, flight) && !isGivenUp) return
    await letGo(tx, letterId, STATE.published, eventId)
    const { topic } = record
    const { partition, offset } = receipt
    const details = {
      ...{ dlq_id: dlqId, event_id: eventId, topic, partition, offset: String(offset) },
      ...sentBy(redrive),
    }
    const sent = { sentAs: eventId, sentTo: topic, details: told(caller, details) }
    await change(work, 'retry', [{ id: letterId, engine: KAFKA, ...sent }], {
      actor: caller.actor,
      notes: notes ?? RETRIED,
      redrive,
    })
    await errand.settled?.(work, { messageId: eventId, queue: topic })
  })
}

const count = ({ listener }: ReturnParts, { claim: { event } }: Flight): void =>
  listener?.resolved?.(event.service, event.originalTopic, 'published')

/** It is certain that it was not written: it is what it was before. */
async function failed(
  parts: ReturnParts,
  flight: Flight,
  { caller, edit }: Errand,
  { why, message }: { readonly why: string; readonly message: string },
): Promise<void> {
  const { claim, eventId, isResend } = flight
  const { letterId, dlqId, editedValue } = claim.event
  await ended(parts, flight, 'publish_failed', async (work, hold) => {
    const { tx, now } = work
    if (edit !== null) await replaceEdit(tx, letterId, editedValue)
    // An earlier copy may be there all the same.
    await noteSendEnd(tx, now, eventId, isResend ? SEND.uncertain : SEND.failed)
    if (isResend) await letGo(tx, letterId, STATE.uncertain, eventId)
    else await letGo(tx, letterId, STATE.pending, null)
    await note(work, hold, {
      operation: 'publishFailed',
      caller,
      details: { dlq_id: dlqId, event_id: eventId, topic: flight.record.topic, why },
      error: message,
    })
  })
}

async function uncertain(
  parts: ReturnParts,
  flight: Flight,
  { caller }: Errand,
  message: string,
): Promise<void> {
  const { claim, eventId, record } = flight
  const { letterId, dlqId } = claim.event
  await ended(parts, flight, 'uncertain', async (work, hold) => {
    await noteSendEnd(work.tx, work.now, eventId, SEND.uncertain)
    await letGo(work.tx, letterId, STATE.uncertain, eventId)
    const details = { dlq_id: dlqId, event_id: eventId, topic: record.topic }
    await note(work, hold, { operation: 'uncertain', caller, details, error: message })
  })
}

/** Writes the end of a flight that did not arrive for certain, unless the event is no longer in our hands. */
function ended(
  parts: ReturnParts,
  flight: Flight,
  what: 'publish_failed' | 'uncertain',
  write: (work: OfficeWork, hold: Hold) => Promise<void>,
): Promise<void> {
  const { letterId, service } = flight.claim.event
  return inOffice(parts.db, parts.clock, 'kafka.settle', async (work) => {
    const hold = await lockHold(work.tx, letterId)
    if (!isOurs(hold, flight)) return
    await write(work, hold)
    work.afterCommit(() => parts.listener?.trouble?.(service, what))
  })
}
