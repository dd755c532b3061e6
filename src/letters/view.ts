/** Letters as the API shows them: the fields of the unified table under its names, then what the office knows besides. */
import { hash } from 'node:crypto'
import type { Instant } from '../core/clock.ts'
import { formatMicros } from '../core/timestamp.ts'
import type { LetterEvent } from '../history/get.ts'
import type { Failure, LetterSummary, Outgoing } from './letter.ts'
import type { CaseFile } from './letters.ts'
import { type PayloadEncoding, showPayload } from './reports/payload.ts'

const optional = (at: Instant | null): string | null => (at === null ? null : formatMicros(at))

/** A letter as lists show it: no payload. */
export const letterFields = (letter: LetterSummary) => ({
  engine: letter.engine,
  rowKey: letter.rowKey,
  instanceId: letter.instanceId,
  originalQueue: letter.originalQueue,
  errorMessage: letter.errorMessage,
  dequeueCount: letter.dequeueCount,
  status: letter.status,
  firstFailureAtUtc: formatMicros(letter.firstFailureAt),
  lastFailureAtUtc: formatMicros(letter.lastFailureAt),
  correlationId: letter.correlationId,
  resolutionNotes: letter.notes,
  resolvedAtUtc: optional(letter.resolvedAt),
  resolvedBy: letter.resolvedBy,
  resolution: letter.resolution,
  confirmedAtUtc: optional(letter.confirmedAt),
  source: letter.source,
  sourceId: letter.sourceId,
  signature: letter.signature,
  reason: letter.reason,
  errorClass: letter.errorClass,
  deadQueue: letter.deadQueue,
})

/** A letter with everything that is on file about it. */
export function letterDetail({ letter, failures, history, restorableUntil }: CaseFile) {
  const original = showPayload(letter.payload)
  const edited = letter.editedPayload === null ? null : showPayload(letter.editedPayload)
  return {
    ...letterFields(letter),
    version: letter.version,
    originalPartition: letter.originalPartition,
    itemCreatedAtUtc: optional(letter.itemCreatedAt),
    expiredAtUtc: optional(letter.expiredAt),
    restorableUntilUtc: optional(restorableUntil),
    originalMessage: original.text,
    originalMessageEncoding: original.encoding,
    originalMessageSha256: sha256(letter.payload),
    editedMessage: edited?.text ?? null,
    editedMessageEncoding: edited?.encoding ?? null,
    encoding: letter.encoding,
    kind: letter.kind,
    reference: letter.reference,
    ...showHeaders(letter.headers),
    errorStack: letter.errorStack,
    failedBy: letter.failedBy,
    leased: letter.place?.leased ?? false,
    leaseDeadlineUtc: optional(letter.place?.leaseDeadline ?? null),
    sentAs: letter.sentAs,
    sentTo: letter.sentTo,
    attempts: failures.map(failureFields),
    history: history.map(eventFields),
  }
}

const failureFields = (failure: Failure) => ({
  number: failure.number,
  failedAtUtc: formatMicros(failure.failedAt),
  failedBy: failure.failedBy,
  errorClass: failure.errorClass,
  errorMessage: failure.errorMessage,
  errorStack: failure.errorStack,
})

const eventFields = (event: LetterEvent) => ({
  engine: event.engine,
  rowKey: event.rowKey,
  operation: event.operation,
  status: event.status,
  createdAtUtc: formatMicros(event.createdAt),
  durationMs: event.durationMs,
  actor: event.actor,
  notes: event.notes,
  error: event.error,
  letterVersion: event.letterVersion,
})

/** What a retry would send: exactly these bytes, to this queue. */
export function outgoingFields(outgoing: Outgoing, edited: boolean) {
  const { text, encoding } = showPayload(outgoing.payload)
  return {
    dryRun: true,
    queue: outgoing.queue,
    payload: text,
    payloadEncoding: encoding,
    payloadSha256: sha256(outgoing.payload),
    encoding: outgoing.encoding,
    kind: outgoing.kind,
    reference: outgoing.reference,
    correlationId: outgoing.correlationId,
    edited,
  }
}

const sha256 = (bytes: Uint8Array): string => hash('sha256', bytes, 'hex')

/** Headers as the object they are when they are JSON; else as text or base64, as payloads are. */
function showHeaders(bytes: Uint8Array | null): {
  readonly headers: unknown
  readonly headersEncoding: PayloadEncoding | 'json' | null
} {
  if (bytes === null) return { headers: null, headersEncoding: null }
  const { text, encoding } = showPayload(bytes)
  try {
    return { headers: JSON.parse(text), headersEncoding: 'json' }
  } catch {
    return { headers: text, headersEncoding: encoding }
  }
}
