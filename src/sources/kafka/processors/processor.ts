/** What a processor is: code of the user's that decides what happens to a dead event. For its authors. */
import type { ExceptionFacts } from '../event.ts'

/**
 * Looks at an event and says what shall become of it. It must be a function of the event: it runs for a dry run and for the real thing
 * alike, and cannot tell them apart. It runs in a thread of its own, which is ended when it takes too long.
 */
export type Processor = (event: DeadEvent, context: ProcessorContext) => Result | Promise<Result>

/** Beside the processor a module may export `when`: whether the event is for this processor. Otherwise the next entry is asked. */
export type When = (event: DeadEvent) => boolean

export interface ProcessorContext {
  /** Writes a line to the log of the server. Long lines are cut, and there is an end to how many. */
  log(message: string): void
  /** Aborted when the time is up; the thread ends right after. */
  readonly signal: AbortSignal
}

/** What shall become of the event. Anything else, also nothing, leaves it where it is and is reported as a failure. */
export type Result =
  /** To be sent to its service, with these changes; left out: as it is, byte for byte. */
  | { readonly action: 'publish'; readonly change?: ResultChange }
  | { readonly action: 'discard'; readonly reason?: string }

export interface ResultChange {
  /** The original topic; the retry topic is that of the service. */
  readonly topic?: string
  readonly type?: string
  readonly key?: string
  /** Written as JSON, bigint in all its digits. */
  readonly payload?: unknown
  /** The bytes of the value, instead of `payload`. */
  readonly rawValue?: Uint8Array
  readonly correlationId?: string
}

/** A dead event, to be looked at: a copy that is frozen all the way down. */
export interface DeadEvent {
  /** `~unknown` when there is none. */
  readonly service: string
  /** The original topic; null when it is not known. */
  readonly topic: string | null
  /** '' when there is none. */
  readonly type: string
  /** null when there is none, and when it is no text. */
  readonly key: string | null
  /** undefined when the value is not JSON. Integers beyond ±(2^53−1) are bigint; NaN and the infinities are numbers. */
  readonly payload: unknown
  readonly rawKey: Uint8Array | null
  readonly rawValue: Uint8Array | null
  /** In their order. A name that is no text is `base64:` and base64. */
  readonly headers: readonly { readonly name: string; readonly value: Uint8Array | null }[]
  readonly correlationId: string | null
  readonly originalEventId: string | null
  readonly timestamp: Date
  /** Where it was read: in the DLQ topic. */
  readonly position: { readonly topic: string; readonly partition: number; readonly offset: bigint }
  readonly exception: ExceptionFacts
  /** How often it died. */
  readonly attempts: number
  readonly reasons: readonly string[]
  readonly warnings: readonly string[]
}
