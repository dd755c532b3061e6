/** What the server and a thread of processors say to each other. */
import { type StoredEvent, UNKNOWN } from '../event.ts'
import type { Decision } from '../ports.ts'
import { shownBytes } from '../wire/headers.ts'
import type { DeadEvent } from './processor.ts'

/** An export of a file; a thread is given all of them when it starts. */
export interface ModuleExport {
  readonly module: string
  readonly export: string
}

/** An event on its way to a thread. The payload is read there: it may take long, or too much memory. */
export type SentEvent = Omit<DeadEvent, 'payload' | 'timestamp' | 'key'> & {
  readonly timestampMs: number
  /** As it is published when nothing is changed; null also when there is none. */
  readonly publishedKey: Uint8Array | null
}

export type ToThread =
  /** Asks these entries, in this order, the first that is for the event. */
  | { readonly kind: 'run'; readonly entries: readonly number[]; readonly event: SentEvent }
  | { readonly kind: 'abort' }

export type FromThread =
  /** `whens`: which entries must be asked whether an event is for them. */
  | { readonly kind: 'loaded'; readonly whens: readonly boolean[] }
  /** What is wrong with entries, by their keys. */
  | { readonly kind: 'broken'; readonly problems: readonly string[] }
  | { readonly kind: 'said'; readonly text: string }
  | { readonly kind: 'decided'; readonly decision: Decision }
  /** Everything that the last run set going at once is done. */
  | { readonly kind: 'ready' }

/** The event for a thread, in bytes of its own: none of them belongs to anything larger. */
export function sentEvent(event: StoredEvent): SentEvent {
  const { facts, order } = event
  return {
    service: event.service,
    topic: event.originalTopic === UNKNOWN ? null : event.originalTopic,
    type: facts.type,
    rawKey: copied(event.key),
    rawValue: copied(event.editedValue ?? event.value),
    publishedKey:
      facts.originalKey === undefined
        ? copied(event.key)
        : new Uint8Array(Buffer.from(facts.originalKey, 'base64')),
    headers: event.headers.map(({ name, value }) => ({ name: shownBytes(name), value: copied(value) })),
    correlationId: facts.correlationId,
    originalEventId: facts.originalEventId,
    timestampMs: Number(event.timestampMs),
    position: { topic: order.topic, partition: order.partition, offset: order.offset },
    exception: facts.exception,
    attempts: event.attempts,
    reasons: facts.reasons,
    warnings: facts.warnings,
  }
}

/** What may be handed over instead of being copied once more. */
export const buffersOf = ({ rawKey, rawValue, publishedKey, headers }: SentEvent): readonly ArrayBuffer[] =>
  [rawKey, rawValue, publishedKey, ...headers.map(({ value }) => value)].flatMap((bytes) =>
    bytes?.buffer instanceof ArrayBuffer ? [bytes.buffer] : [],
  )

const copied = (bytes: Uint8Array | null): Uint8Array | null =>
  bytes === null ? null : new Uint8Array(bytes)
