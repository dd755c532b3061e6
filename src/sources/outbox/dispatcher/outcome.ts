/** Results of a claim: delivered, failed, dead or given back. */
import { type Instant, later } from '../../../core/clock.ts'
import { PermanentError } from '../../../core/thrown.ts'
import type { ClaimEnd, ClaimedMessage } from '../table/message.ts'
import { ClaimLost } from '../transports/transport.ts'
import { type DispatcherSettings, delayAfter, errorText } from './options.ts'

/** A message in delivery, and the name of its line. */
export interface Delivery {
  readonly message: ClaimedMessage
  readonly line: string | null
}

/** `transfer`: the transaction that settles the message also puts it where it belongs. */
export type Outcome = ClaimEnd | { readonly kind: 'transfer' }

export const PROCESSED = { kind: 'processed' } as const satisfies Outcome
export const TRANSFER = { kind: 'transfer' } as const satisfies Outcome
/** Not delivered; anybody may have it. */
export const GIVEN_BACK = { kind: 'released', parked: false } as const satisfies Outcome
/** Not delivered, because of one before it in its line. */
export const PARKED = { kind: 'released', parked: true } as const satisfies Outcome

/** Claims without a settlement that a message survives. */
export const mostClaims = ({ maxRetries }: DispatcherSettings): number => maxRetries + 2

export function outcomeOf(
  caught: unknown,
  { retryCount }: ClaimedMessage,
  settings: DispatcherSettings,
  now: Instant,
): Outcome {
  const thrown = legible(caught)
  // Giving it back shows that it did not end this dispatcher.
  if (thrown instanceof ClaimLost || thrown instanceof DispatcherStopped) return GIVEN_BACK
  const error = errorText(thrown, settings.maxErrorTextLength)
  if (thrown instanceof PermanentError || retryCount >= settings.maxRetries)
    return { kind: 'dead', error, failures: 1 }
  const delayMs = delayAfter(thrown, settings, retryCount)
  return { kind: 'failed', error, nextAttemptAt: later(now, BigInt(delayMs) * 1_000n) }
}

/** Claimed too often and never settled. */
export const poisoned = ({ claims }: ClaimedMessage, { maxErrorTextLength }: DispatcherSettings): Outcome => {
  const poison = new PoisonMessage(
    `it was claimed ${claims - 1} times and never settled; delivering it seems to end the dispatcher`,
  )
  return { kind: 'dead', error: errorText(poison, maxErrorTextLength), failures: 0 }
}

class PoisonMessage extends Error {
  override readonly name = 'PoisonMessage'
}

export class DispatcherStopped extends Error {
  override readonly name = 'Stopped'
}

/** An error in place of a thrown value that cannot be read, such as a revoked proxy. */
function legible(thrown: unknown): unknown {
  try {
    if (thrown instanceof Error) return thrown
  } catch {
    return new Error('something was thrown that cannot be read')
  }
  return thrown
}
