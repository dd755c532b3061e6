/**
 * Publishing: intent on file, then the broker, then the result on file. `kafka_sends` has one row for each minted id, so that the same
 * bytes can be sent again and be recognised. Whoever lost the claim meanwhile leaves the event alone: its record came back, or others gave
 * it up.
 */
import { createHash } from 'node:crypto'
import { change, NOBODY } from '../../../letters/change.ts'
import { replaceEdit } from '../../../letters/contents.ts'
import { RETRIED, sentBy } from '../../../letters/letter.ts'
import { inOffice, type OfficeWork } from '../../../letters/work.ts'
import type { PublishOutcome } from '../../../outgoing/kafka/producer.ts'
import type { OutgoingRecord } from '../../../outgoing/kafka/record.ts'
import { type Session, sql } from '../../../store/database.ts'
import { bytes, flag, rowShape, text } from '../../../store/row.ts'
import { type Caller, type EventId, KAFKA, SEND, STATE } from '../event.ts'
import type { StoredEvent } from '../stored-event.ts'
import { decodeHeaders, encodeHeaders, sameBytes } from '../wire/bytes.ts'
import { type Claim, type ClaimOnFile, claimEvent, letGo, lockClaim, note, outputOf } from './claim.ts'
import type { Obstacle, ReturnParts } from './terms.ts'

const insertSend = sql(
  'kafka.insertSend',
  `INSERT INTO bartleby.kafka_sends (event_id, letter_id, made_at, resends, outcome, reopened, value_kept, target, digest, actor,
     request_id, record_key, value, headers)
   VALUES ($1, $2, $3, 0, ${SEND.publishing}, 0, $4, $5, $6, $7, $8, $9, $10, $11)`,
)

const SENT = rowShape({
  ...{ valueKept: flag, target: text, recordKey: bytes, value: bytes, headers: decodeHeaders },
})
/** By primary key. */
const readSend = sql('kafka.readSend', `SELECT ${SENT.columns} FROM bartleby.kafka_sends WHERE event_id = $1`)
const countResend = sql(
  'kafka.countResend',
  `UPDATE bartleby.kafka_sends SET resends = resends + 1, outcome = ${SEND.publishing} WHERE event_id = $1`,
)
const endSend = sql(
  'kafka.endSend',
  'UPDATE bartleby.kafka_sends SET outcome = $2, settled_at = $3 WHERE event_id = $1',
)
const putReceipt = sql(
  'kafka.putReceipt',
  `UPDATE bartleby.kafka_sends SET outcome = ${SEND.published}, settled_at = $2, published_partition = $3, published_offset = $4
   WHERE event_id = $1`,
)

interface Publishing {
  readonly claim: Claim
  readonly eventId: EventId
  readonly record: OutgoingRecord
  /** Sent before, with unknown end. */
  readonly isResend: boolean
}

/** Puts the intent on file. False when the claim is gone, and nothing may be sent. */
export function intend(parts: ReturnParts, { claim, eventId, record }: Publishing): Promise<boolean> {
  const { event, token, terms } = claim
  const { letterId } = event
  return inOffice(parts.db, parts.clock, 'kafka.intend', async (work) => {
    const { tx, now } = work
    const held = await lockClaim(tx, letterId)
    if (held?.claim !== token) return false
    if (terms.edit !== null) await replaceEdit(tx, letterId, terms.edit)
    if (held.redrive !== (terms.redrive?.number ?? null))
      await change(work, 'intend', [{ id: letterId, engine: KAFKA }], { ...NOBODY, redrive: terms.redrive })
    // The letter's own value is not kept twice.
    const isOwn = sameBytes(record.value, event.value)
    const { actor, requestId } = terms.caller
    const sent = [record.topic, digestOf(record), actor, requestId, record.key] as const
    const content = [isOwn ? null : record.value, encodeHeaders(record.headers)] as const
    await tx.run(insertSend, eventId, letterId, now, isOwn ? 1 : 0, ...sent, ...content)
    await claimEvent(work, claim, parts, { state: STATE.publishing, eventId })
    return true
  })
}

/** Claims an uncertain event, whose letter is locked, to send the same once more. */
export async function intendAgain(
  parts: ReturnParts,
  work: OfficeWork,
  { claim, eventId, record }: Publishing,
): Promise<void> {
  const { event, terms } = claim
  const held = await lockClaim(work.tx, event.letterId)
  if (held === null) throw new Error(`letter ${event.letterId} is gone although it was locked`)
  await work.tx.run(countResend, eventId)
  await claimEvent(work, claim, parts, { state: STATE.publishing, eventId })
  const details = { dlq_id: event.dlqId, event_id: eventId, topic: record.topic }
  await note(work, held, { operation: 'resent', caller: terms.caller, details, error: null })
}

export async function sentRecord(
  session: Session,
  event: StoredEvent,
  eventId: EventId,
): Promise<OutgoingRecord> {
  const sent = await SENT.one(session, readSend, eventId)
  if (sent === null) throw new Error(`what was sent as ${eventId} is not on file`)
  const { target: topic, recordKey: key, valueKept, value, headers } = sent
  return { topic, key, value: valueKept ? event.value : value, headers }
}

/** Null when it is published. */
export async function publish(parts: ReturnParts, publishing: Publishing): Promise<Obstacle | null> {
  const { claim, eventId, record } = publishing
  const outcome = await outcomeOf(parts, record)
  await settle(parts, publishing, outcome)
  switch (outcome.outcome) {
    case 'published':
      return null
    case 'failed':
      return outcome.why === 'too_large'
        ? { why: 'guarded', event: claim.event, reasons: ['too_large'] }
        : { why: 'kafka_away', message: outcome.message }
    case 'uncertain':
      return { why: 'doubt', eventId, message: outcome.message }
  }
}

async function outcomeOf({ publisher, log }: ReturnParts, record: OutgoingRecord): Promise<PublishOutcome> {
  try {
    return await publisher.publish(record)
  } catch (error) {
    // It never throws. If it does, nobody knows how far it came.
    log.error({ err: error, topic: record.topic }, 'publishing broke off')
    return { outcome: 'uncertain', message: 'publishing broke off' }
  }
}

/** Writes the result, as far as the event is still this attempt's. */
function settle(parts: ReturnParts, publishing: Publishing, outcome: PublishOutcome): Promise<void> {
  const { claim, eventId } = publishing
  const { letterId, service, originalTopic } = claim.event
  return inOffice(parts.db, parts.clock, 'kafka.settle', async (work) => {
    const held = await lockClaim(work.tx, letterId)
    const isCurrent = held?.eventId === eventId
    const isOurs = isCurrent && held.claim === claim.token
    if (outcome.outcome === 'published') {
      await work.tx.run(putReceipt, eventId, work.now, outcome.partition, outcome.offset)
      work.afterCommit(() => parts.listener?.resolved?.(service, originalTopic, 'published'))
      // Others gave us up, but we know better.
      if (isOurs || (isCurrent && held.state === STATE.uncertain)) await resolve(work, publishing, outcome)
    } else if (isOurs) {
      await settleUnsent(work, held, publishing, outcome)
      const what = outcome.outcome === 'failed' ? 'publish_failed' : 'uncertain'
      work.afterCommit(() => parts.listener?.trouble?.(service, what))
    }
  })
}

async function resolve(
  work: OfficeWork,
  { claim: { event, terms }, eventId, record: { topic } }: Publishing,
  { partition, offset }: Extract<PublishOutcome, { outcome: 'published' }>,
): Promise<void> {
  const { letterId: id, dlqId } = event
  const { caller, notes, redrive } = terms
  await letGo(work.tx, id, STATE.published, eventId)
  const details = outputOf(caller, {
    ...{ dlq_id: dlqId, event_id: eventId, topic, partition, offset: String(offset) },
    ...sentBy(redrive),
  })
  await change(work, 'retry', [{ id, engine: KAFKA, sentAs: eventId, sentTo: topic, details }], {
    actor: caller.actor,
    notes: notes ?? RETRIED,
    redrive,
  })
  await terms.settled?.(work, { messageId: eventId, queue: topic })
}

/** Certainly not written: the event is what it was before. Otherwise it is uncertain. */
async function settleUnsent(
  work: OfficeWork,
  held: ClaimOnFile,
  { claim: { event, terms }, eventId, record: { topic }, isResend }: Publishing,
  outcome: Exclude<PublishOutcome, { outcome: 'published' }>,
): Promise<void> {
  const { caller } = terms
  const details = { dlq_id: event.dlqId, event_id: eventId, topic }
  if (outcome.outcome === 'uncertain') {
    return endUncertain(work, held, eventId, { caller, details, error: outcome.message })
  }
  const { tx, now } = work
  const { letterId } = event
  if (terms.edit !== null) await replaceEdit(tx, letterId, event.editedValue)
  // An earlier copy may be there all the same.
  await tx.run(endSend, eventId, isResend ? SEND.uncertain : SEND.failed, now)
  await letGo(tx, letterId, isResend ? STATE.uncertain : STATE.pending, isResend ? eventId : null)
  const { why, message } = outcome
  await note(work, held, {
    operation: 'publishFailed',
    caller,
    details: { ...details, why },
    error: message,
  })
}

export async function endUncertain(
  work: OfficeWork,
  held: ClaimOnFile,
  eventId: EventId,
  why: { readonly caller: Caller; readonly details: object; readonly error: string },
): Promise<void> {
  await work.tx.run(endSend, eventId, SEND.uncertain, work.now)
  await letGo(work.tx, held.letterId, STATE.uncertain, eventId)
  await note(work, held, { operation: 'uncertain', ...why })
}

/** Lengths first, −1 for none. */
function digestOf({ key, value }: OutgoingRecord): string {
  const hash = createHash('sha256')
  for (const field of [key, value]) {
    const length = Buffer.alloc(4)
    length.writeInt32BE(field?.length ?? -1)
    hash.update(length)
    if (field !== null) hash.update(field)
  }
  return hash.digest('hex')
}
