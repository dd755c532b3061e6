/** When a message that failed is tried again, and what is kept of why it failed. */
import { describeError } from '../core/thrown.ts'
import type { DispatcherSettings } from './options.ts'
import { RetryLater } from './transport.ts'

/** A receiver that asks for more is tried again after this long: longer, and nobody remembers the message. */
const MOST_PATIENCE_MS = 86_400_000

/** How long to wait after a failure of a message that had failed `retryCount` times before. */
function retryDelayMs(settings: DispatcherSettings, retryCount: number, random = Math.random): number {
  const { baseRetryDelaySeconds, useExponentialBackoff, maxRetryDelaySeconds, jitter } = settings
  const factor = useExponentialBackoff ? 2 ** retryCount : 1
  const wantedMs = Math.min(baseRetryDelaySeconds * factor, maxRetryDelaySeconds) * 1_000
  const swung = wantedMs * (1 + jitter * (2 * random() - 1))
  return Math.round(Math.min(swung, maxRetryDelaySeconds * 1_000))
}

/** The same, when the receiver may have said how long it wants to be left alone. */
export function delayAfter(thrown: unknown, settings: DispatcherSettings, retryCount: number): number {
  const delayMs = retryDelayMs(settings, retryCount)
  const askedMs = thrown instanceof RetryLater ? Math.ceil(thrown.retryAfterMs) : 0
  return Math.max(delayMs, Number.isFinite(askedMs) ? Math.min(askedMs, MOST_PATIENCE_MS) : MOST_PATIENCE_MS)
}

/** The longest time from the first delivery of a message to its last, when each is answered at once. */
export function retryHorizonSeconds(settings: DispatcherSettings): number {
  let horizonMs = 0
  for (let retry = 0; retry < settings.maxRetries; retry++)
    horizonMs += retryDelayMs(settings, retry, () => 1)
  return horizonMs / 1_000
}

/** What a row keeps of an error: its class and message, cut to at most `maxLength` characters. */
export function errorText(thrown: unknown, maxLength: number): string {
  const { errorClass, errorMessage } = describeError(thrown)
  // PostgreSQL takes no U+0000, and neither store half a character.
  return `${errorClass}: ${errorMessage}`.replaceAll('\0', '\uFFFD').slice(0, maxLength).toWellFormed()
}
