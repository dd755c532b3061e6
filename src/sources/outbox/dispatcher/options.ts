/** What a dispatcher can be told, with the names and defaults that its users know; what is wrong is named; and the delays that follow. */
import { describeError } from '../../../core/thrown.ts'
import { checkNumber, decimal, type Range, refuse, refuseUnknown, shown, whole } from '../refusal.ts'
import { RetryLater } from '../transports/transport.ts'

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

/** What is told a dispatcher where nothing else is. */
export const DISPATCHER_DEFAULTS = {
  /** How often to look for messages that nobody announced. */
  pollIntervalSeconds: 5,
  /** Messages per claim. */
  batchSize: 100,
  /** Deliveries after the first before a message is dead. */
  maxRetries: 5,
  baseRetryDelaySeconds: 10,
  /** False: every delay is the base. */
  useExponentialBackoff: true,
  maxRetryDelaySeconds: 3_600,
  /** The share of a delay that chance adds or takes away. */
  jitter: 0.2,
  maxErrorTextLength: 2_000,
  /** Deliveries at the same time. */
  concurrency: 16,
  /** A claim that is not renewed for so long lapses. */
  claimSeconds: 60,
  /** How long one delivery may take. */
  deliveryTimeoutSeconds: 30,
  /** Whether a dead message holds back the later ones of its ordering key. */
  onDead: 'hold' as 'hold' | 'skip',
  retention: {
    /** Days that processed rows are kept; 0 keeps them for ever. */
    processed: 7,
    /** Days that keys are kept, from the day their rows were processed; at least as long as the rows. */
    keys: 30,
  },
}

type Retention = Readonly<(typeof DISPATCHER_DEFAULTS)['retention']>
export type DispatcherSettings = Readonly<
  Omit<typeof DISPATCHER_DEFAULTS, 'retention'> & { readonly retention: Retention }
>

/** The settings that are given; what is left out has its default. */
export type GivenSettings = Partial<Omit<DispatcherSettings, 'retention'>> & {
  readonly retention?: Partial<Retention>
}

/** Names of outboxes stand in source ids of letters, in labels and in addresses. */
export const OUTBOX_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
export const OUTBOX_NAME_FORM = "1 to 64 letters, digits, '.', '_' or '-', the first one a letter or digit"

const YEAR_SECONDS = 31_536_000

/** What the numbers may be. */
export const DISPATCHER_RANGES = {
  pollIntervalSeconds: decimal(0.01, 3_600),
  batchSize: whole(1, 10_000),
  maxRetries: whole(0, 1_000),
  baseRetryDelaySeconds: decimal(0, YEAR_SECONDS),
  maxRetryDelaySeconds: decimal(0, YEAR_SECONDS),
  jitter: decimal(0, 1),
  maxErrorTextLength: whole(1, 100_000),
  concurrency: whole(1, 10_000),
  claimSeconds: decimal(1, 86_400),
  deliveryTimeoutSeconds: decimal(0.01, 86_400),
} as const satisfies Partial<Record<keyof DispatcherSettings, Range>>

export const RETENTION_RANGE = decimal(0, 36_500)

/** The options as given, with defaults for what is left out. Refuses what is unknown or out of range, by name. */
export function readSettings(given: GivenSettings): DispatcherSettings {
  refuseUnknown(given, Object.keys(DISPATCHER_DEFAULTS))
  const settings = { ...DISPATCHER_DEFAULTS, ...withoutUndefined(given) }
  for (const [name, range] of Object.entries(DISPATCHER_RANGES)) {
    // Every name of a range is one of the settings.
    checkNumber(name, settings[name as keyof typeof DISPATCHER_RANGES], range)
  }
  const { useExponentialBackoff, onDead } = settings
  if (typeof useExponentialBackoff !== 'boolean')
    refuse('useExponentialBackoff', `${shown(useExponentialBackoff)} is neither true nor false`)
  if (onDead !== 'hold' && onDead !== 'skip')
    refuse('onDead', `${shown(onDead)} is neither 'hold' nor 'skip'`)
  const asked = given.retention ?? {}
  refuseUnknown(asked, Object.keys(DISPATCHER_DEFAULTS.retention), 'retention.')
  const retention = { ...DISPATCHER_DEFAULTS.retention, ...withoutUndefined(asked) }
  checkNumber('retention.processed', retention.processed, RETENTION_RANGE)
  checkNumber('retention.keys', retention.keys, RETENTION_RANGE)
  return { ...settings, retention }
}

function withoutUndefined<T extends object>(given: T): Partial<T> {
  // Entries of T are entries of a part of T.
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<T>
}
