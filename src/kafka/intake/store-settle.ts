/** Publishes that nobody knew the end of, and whose event came back: they did happen. */
import { type Integer, type Session, sql } from '../../db/database.ts'
import { change } from '../../letters/change.ts'
import { type LetterId, letterId, RETRIED, type RedriveRef, sentBy } from '../../letters/letter.ts'
import { type CaseRow, sentBack } from '../../letters/locked.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { redriveNumber, refOf } from '../../redrive/redrive.ts'
import { readRedriveByNumber } from '../../redrive/rows.ts'
import { type EventFacts, KAFKA, STATE } from '../event.ts'
import { SEND } from '../send.ts'
import type { Reopening } from './store-incoming.ts'

/** The queue of an event that turned out to be published. */
export type Settled = Pick<EventFacts, 'service' | 'originalTopic'>

const OPEN = `send.letter_id, send.event_id, send.target, send.actor, send.request_id, event.dlq_id, event.service, event.original_topic,
  event.state`
const IS_OPEN = `event.event_id = send.event_id AND event.state IN (${STATE.claimed}, ${STATE.publishing}, ${STATE.uncertain})`

/** The current publishes of events that are not settled, and their events; both by primary key. */
const readOpen = sql(
  'kafka.openSends',
  `SELECT ${OPEN} FROM bartleby.kafka_sends AS send JOIN bartleby.kafka_events AS event ON event.letter_id = send.letter_id
   WHERE send.event_id = ANY($1::uuid[]) AND ${IS_OPEN}`,
  { bigints: true },
)

type OpenRow = Readonly<
  Record<'letter_id' | 'state', Integer> &
    Record<'event_id' | 'target' | 'actor' | 'dlq_id' | 'service' | 'original_topic', string> & {
      request_id: string | null
    }
>

/** By primary key. What came back was published, whatever was known of it; it reopens its letter once. */
const spendSends = sql(
  'kafka.spendSends',
  `UPDATE bartleby.kafka_sends SET reopened = 1, outcome = ${SEND.published}, settled_at = coalesce(settled_at, $2)
   WHERE event_id = ANY($1::uuid[])`,
)

/**
 * Notes that what came back was published, whatever was known of it. Where nobody knew, its letter is resolved by it now, before it dies
 * again; gives those that were uncertain.
 */
export async function settleOpenSends(
  work: OfficeWork,
  round: readonly Reopening[],
  cases: Map<LetterId, CaseRow>,
): Promise<Settled[]> {
  const { tx, now } = work
  const ids = round.map(({ send }) => send)
  const open = await tx.rows<OpenRow>(readOpen, ids)
  await tx.run(spendSends, ids, now)
  for (const row of open) {
    const id = letterId(row.letter_id)
    const known = cases.get(id)
    if (known === undefined) throw new Error(`letter ${id} is gone although it was locked`)
    const { event_id: sentAs, target: sentTo, actor, request_id, dlq_id } = row
    const redrive = await redriveOf(tx, known)
    const details = { request_id, dlq_id, event_id: sentAs, topic: sentTo, ...sentBy(redrive) }
    const sent = { id, engine: KAFKA, sentAs, sentTo, details }
    await change(work, 'retry', [sent], { actor, notes: RETRIED, redrive })
    cases.set(id, sentBack(known))
  }
  // Who is publishing it counts it when the broker answers.
  return open
    .filter(({ state }) => Number(state) === STATE.uncertain)
    .map((row) => ({ service: row.service, originalTopic: row.original_topic }))
}

/** The redrive that a letter left for, when one sent it. */
async function redriveOf(session: Session, { redrive }: CaseRow): Promise<RedriveRef | undefined> {
  const known = redrive === null ? null : await readRedriveByNumber(session, redriveNumber(redrive))
  return known === null ? undefined : refOf(known)
}
