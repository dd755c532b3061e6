/** What records died of, as letters say it. Deaths of the same kind come in swarms and share one cause. */
import { signatureOf } from '../../core/signature.ts'
import { type Cause, PLAIN_RECORD } from '../../letters/bury.ts'
import { type EventFacts, KAFKA, KAFKA_OPERATIONS, SYSTEM, UNKNOWN } from '../event.ts'

/** What letters say about a failure that no header explains. */
const UNKNOWN_CLASS = 'unknown'

const RECORD: Cause['record'] = {
  ...PLAIN_RECORD,
  captured: KAFKA_OPERATIONS.received,
  reopened: KAFKA_OPERATIONS.reopened,
  actor: SYSTEM.actor,
}

/** The causes of records that are stored together; their signatures are known from then on. */
export function causes(): (facts: EventFacts) => Cause {
  const kinds = new Map<string, Cause>()
  return (facts) => {
    const { class: errorClass = UNKNOWN_CLASS, message: errorMessage = '', stack = null } = facts.exception
    const queue = queueOf(facts)
    const kind = JSON.stringify([queue, errorClass, errorMessage, stack])
    const known = kinds.get(kind)
    if (known !== undefined) return known
    const cause: Cause = {
      source: KAFKA,
      engine: KAFKA,
      queue,
      reason: 'failed',
      errorClass,
      errorMessage,
      errorStack: stack,
      failedBy: facts.service === UNKNOWN ? null : facts.service,
      record: RECORD,
    }
    signatureOf(cause)
    kinds.set(kind, cause)
    return cause
  }
}

/** The queue of the drawer that letters of this event lie in. */
export const queueOf = ({ service, originalTopic }: Pick<EventFacts, 'service' | 'originalTopic'>): string =>
  `${service}/${originalTopic}`
