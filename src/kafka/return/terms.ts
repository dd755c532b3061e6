/** One call on the return path: what it is about, how it is to be done, and for whom. */
import type { LetterId, RedriveRef, Settled } from '../../letters/letter.ts'
import type { Caller } from '../event.ts'
import type { Override } from '../ports.ts'

/** The next event of a queue. */
export interface QueueGoal {
  readonly by: 'queue'
  readonly service: string
  /** null: of all topics of the service. */
  readonly topic: string | null
  /** The next event must be this one; null: whichever it is. Lower case. */
  readonly dlqId: string | null
}

/** The event of one letter, wherever it stands. */
export interface LetterGoal {
  readonly by: 'letter'
  readonly service: string
  readonly letterId: LetterId
}

export type Goal = QueueGoal | LetterGoal

export interface Errand {
  readonly caller: Caller
  /** Replaces topic, type, key and value, and keeps processors out. */
  readonly override: Override | null
  /** Replaces the value, and keeps processors out. */
  readonly edit: Uint8Array | null
  readonly mintCorrelationId: boolean
  /** Whether what may have been published already is sent again. */
  readonly resend: boolean
  /** Whether the event is discarded when its processor says so. */
  readonly mayDiscard: boolean
  readonly notes: string | null
  /** The redrive that sends it; left out: none does. */
  readonly redrive?: RedriveRef | undefined
  /** Runs in the transaction that writes that it was published. */
  readonly settled?: Settled | undefined
}
