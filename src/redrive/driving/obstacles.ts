/** What stops a redrive, and what concerns one letter only. */
import { BartlebyError, type ErrorCode } from '../../core/errors.ts'
import type { Refused } from '../../letters/source.ts'
import { StoreUnavailable } from '../../store/database.ts'
import type { Exception } from '../redrive.ts'

/** The destination is gone or out of reach: other letters would fare no better. */
const OBSTACLES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'letter_queue_gone',
  'letter_outbox_unknown',
  'letter_outbox_away',
  'letter_kafka_away',
  'kafka_not_enabled',
  'letter_azure_away',
  'azure_not_configured',
])

const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'letter_service_busy',
  'letter_entity_busy',
  'service_stopping',
])

export const isObstacle = (error: unknown): error is BartlebyError =>
  error instanceof BartlebyError && OBSTACLES.has(error.code)

/** Whether the same may work soon: the store, or a place that others are using. */
export const isPassing = (error: unknown): boolean =>
  error instanceof StoreUnavailable || (error instanceof BartlebyError && PASSING.has(error.code))

export const isAboutLetter = (error: BartlebyError): boolean => !isObstacle(error) && !isPassing(error)

/** The reason in an error's message, without the prefix of the queue API. */
export const reasonOf = (error: BartlebyError): string =>
  error.message.slice(error.message.indexOf(';') + 1).trim()

/** Refusals before anything was tried: the letter changed, or is not next. */
const SKIPS: ReadonlyMap<ErrorCode, Exception['reason']> = new Map<ErrorCode, Exception['reason']>([
  ['letter_status_wrong', 'changed'],
  ['letter_leased', 'leased'],
  ['letter_in_flight', 'leased'],
  ['letter_not_next', 'order_blocked'],
])

export function exceptionOf({ letter, refusal }: Refused): Exception {
  const skip = SKIPS.get(refusal.code)
  return {
    letter: letter.id,
    outcome: skip === undefined ? 'failed' : 'skipped',
    reason: skip ?? 'send_refused',
    detail: reasonOf(refusal),
  }
}
