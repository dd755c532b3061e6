/** Settings of a dispatcher, their checks, and the delays that follow from them. */
import type { Static } from 'typebox'
import {
  decimal,
  type Fixed,
  type Given,
  oneOf,
  section,
  wholeNumber,
  yesOrNo,
} from '../../../core/settings/kinds.ts'
import { withDefaults } from '../../../core/settings/read.ts'
import { describeError } from '../../../core/thrown.ts'
import { readOptions } from '../refusal.ts'
import { RetryLater } from '../transports/transport.ts'

/** The longest wait that a receiver may ask for. */
const MOST_PATIENCE_MS = 86_400_000

/** The delay after a failure of a message that had failed `retryCount` times before. */
function retryDelayMs(settings: DispatcherSettings, retryCount: number, random = Math.random): number {
  const { baseRetryDelaySeconds, useExponentialBackoff, maxRetryDelaySeconds, jitter } = settings
  const factor = useExponentialBackoff ? 2 ** retryCount : 1
  const wantedMs = Math.min(baseRetryDelaySeconds * factor, maxRetryDelaySeconds) * 1_000
  const swung = wantedMs * (1 + jitter * (2 * random() - 1))
  return Math.round(Math.min(swung, maxRetryDelaySeconds * 1_000))
}

/** The same, unless the receiver asked for longer. */
export function delayAfter(thrown: unknown, settings: DispatcherSettings, retryCount: number): number {
  const delayMs = retryDelayMs(settings, retryCount)
  const askedMs = thrown instanceof RetryLater ? Math.ceil(thrown.retryAfterMs) : 0
  return Math.max(delayMs, Number.isFinite(askedMs) ? Math.min(askedMs, MOST_PATIENCE_MS) : MOST_PATIENCE_MS)
}

/** The longest time from first to last delivery, when each is answered at once. */
export function retryHorizonSeconds(settings: DispatcherSettings): number {
  let horizonMs = 0
  for (let retry = 0; retry < settings.maxRetries; retry++)
    horizonMs += retryDelayMs(settings, retry, () => 1)
  return horizonMs / 1_000
}

/** Class and message, cut to `maxLength` characters. */
export function errorText(thrown: unknown, maxLength: number): string {
  const { errorClass, errorMessage } = describeError(thrown)
  // PostgreSQL takes no U+0000, and neither store half a character.
  return `${errorClass}: ${errorMessage}`.replaceAll('\0', '\uFFFD').slice(0, maxLength).toWellFormed()
}

const YEAR_SECONDS = 31_536_000
const keptDays = (description: string, byDefault: number) =>
  decimal(description, { from: 0, to: 36_500, default: byDefault })

export const DISPATCHER_KEYS = {
  pollIntervalSeconds: decimal('How often to look for messages that nobody announced.', {
    from: 0.01,
    to: 3_600,
    default: 5,
  }),
  batchSize: wholeNumber('Messages per claim.', { from: 1, to: 10_000, default: 100 }),
  maxRetries: wholeNumber('Deliveries after the first before a message is dead.', {
    from: 0,
    to: 1_000,
    default: 5,
  }),
  baseRetryDelaySeconds: decimal('The first delay.', { from: 0, to: YEAR_SECONDS, default: 10 }),
  useExponentialBackoff: yesOrNo('Whether each delay is twice the one before; else all are the first.', {
    default: true,
  }),
  maxRetryDelaySeconds: decimal('The longest delay.', { from: 0, to: YEAR_SECONDS, default: 3_600 }),
  jitter: decimal('The share of a delay that chance adds or takes away.', { from: 0, to: 1, default: 0.2 }),
  maxErrorTextLength: wholeNumber('Characters that are kept of an error.', {
    from: 1,
    to: 100_000,
    default: 2_000,
  }),
  concurrency: wholeNumber('Deliveries at the same time.', { from: 1, to: 10_000, default: 16 }),
  claimSeconds: decimal('A claim that is not renewed for so long lapses.', {
    from: 1,
    to: 86_400,
    default: 60,
  }),
  deliveryTimeoutSeconds: decimal('How long one delivery may take.', { from: 0.01, to: 86_400, default: 30 }),
  onDead: oneOf(
    "Whether a dead message holds back the later ones of its ordering key ('hold'), or they go on ('skip').",
    ['hold', 'skip'],
    { default: 'hold' },
  ),
  retention: section(
    'How long the table keeps what is done.',
    {
      processed: keptDays('Days that processed rows are kept; 0: for ever.', 7),
      keys: keptDays(
        'Days that keys are known, from the day their rows were processed; at least as long as the rows.',
        30,
      ),
    },
    'a mapping with processed and keys, in days',
  ),
}

const DispatcherSchema = section('What a dispatcher can be told.', DISPATCHER_KEYS)

export type DispatcherSettings = Fixed<Static<typeof DispatcherSchema>>

export type GivenSettings = Given<DispatcherSettings>

export const DISPATCHER_DEFAULTS = withDefaults(DispatcherSchema, {})

/** Fills in defaults. Refuses what is unknown or out of range, by name. */
export const dispatcherSettings = (given: GivenSettings): DispatcherSettings =>
  readOptions(DispatcherSchema, given)

/** Part of source ids of letters, of labels and addresses. */
export const OUTBOX_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
export const OUTBOX_NAME_FORM = "1 to 64 letters, digits, '.', '_' or '-', the first one a letter or digit"
