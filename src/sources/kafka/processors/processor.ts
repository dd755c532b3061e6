/** For authors of processors: code of the user's that decides what happens to a dead event. */
import type { ExceptionFacts } from '../event.ts'

/**
 * Decides about an event. It must be a function of the event: a dry run and the real thing make the same call. It runs in a thread of its
 * own, which is ended when it takes too long.
 */
export type Processor = (event: DeadEvent, context: ProcessorContext) => Result | Promise<Result>

/** A module may also export `when`: false passes the event to the next entry. */
export type When = (event: DeadEvent) => boolean

export interface ProcessorContext {
  /** Writes a line to the server's log. Length and number are limited. */
  log(message: string): void
  /** Aborted when the time is up; the thread ends right after. */
  readonly signal: AbortSignal
}

/** Anything else, also nothing, leaves the event where it is and is reported as a failure. */
export type Result =
  /** Sent to its service; without changes byte for byte. */
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

/** A copy, frozen all the way down. */
export interface DeadEvent {
  /** `~unknown` without one. */
  readonly service: string
  /** The original topic; null if unknown. */
  readonly topic: string | null
  /** '' without one. */
  readonly type: string
  /** Null without one, or if it is no text. */
  readonly key: string | null
  /** Undefined when the value is not JSON. Integers beyond ±(2^53−1) are bigint; NaN and the infinities are numbers. */
  readonly payload: unknown
  readonly rawKey: Uint8Array | null
  readonly rawValue: Uint8Array | null
  /** In their order. A name that is no text is `base64:` and base64. */
  readonly headers: readonly { readonly name: string; readonly value: Uint8Array | null }[]
  readonly correlationId: string | null
  readonly originalEventId: string | null
  readonly timestamp: Date
  /** In the DLQ topic. */
  readonly position: { readonly topic: string; readonly partition: number; readonly offset: bigint }
  readonly exception: ExceptionFacts
  /** How often it died. */
  readonly attempts: number
  readonly reasons: readonly string[]
  readonly warnings: readonly string[]
}
