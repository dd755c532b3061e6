/** How webhooks behave. The keys are those of the `webhooks` section of a configuration file. */

import { REFUSED_BY_DEFAULT } from '../../core/address-ranges.ts'
import { type Clock, microseconds } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Xids } from '../../core/xid.ts'
import type { Registers } from '../../letters/drawers.ts'
import type { Database } from '../../store/database.ts'

export interface WebhookSettings {
  /** The management calls without tokens of their own stay open when the server has tokens. */
  readonly openManagement: boolean
  readonly api: {
    /** Whether views of producers, channels and consumers show their tokens. */
    readonly exposeTokens: boolean
  }
  readonly delivery: {
    /** Jobs that this server may have claimed at a time, whatever the number of workers. */
    readonly maxQueue: number
    /** Attempts of this server at the same time. */
    readonly workers: number
    /** Attempts at one consumer at the same time, unless the consumer has its own limit. */
    readonly consumerWorkers: number
    /** Attempts of a job are one more than this. */
    readonly maxRetry: number
    readonly backoffSeconds: readonly number[]
    /** How often what is due is looked for, and the grace of deadlines. */
    readonly rationalDelaySeconds: number
    readonly tokenHeader: string
    readonly userAgent: string
    /** For the whole of an attempt: connecting, sending, waiting for the status. */
    readonly timeoutSeconds: number
    /** Callback addresses that are refused: `loopback`, `private`, `link-local`, `metadata` or ranges such as `10.0.0.0/8`. */
    readonly refusedAddresses: readonly string[]
    readonly breaker: {
      /** So many failures in a row, and nothing else for `forSeconds`, pause a consumer. 0: never. */
      readonly failures: number
      readonly forSeconds: number
      /** The first pause; each one after a failed probe is twice as long, up to `longestPauseSeconds`. */
      readonly pauseSeconds: number
      readonly longestPauseSeconds: number
    }
  }
  readonly recovery: { readonly enabled: boolean }
  readonly scheduler: {
    readonly intervalMs: number
    readonly minDelayMinutes: number
    readonly batchSize: number
  }
  readonly dlq: {
    /** How often counts are folded, at the latest. The numbers never depend on it. */
    readonly summaryIntervalSeconds: number
    /** Jobs of one transaction when all dead jobs of a consumer are requeued or purged. */
    readonly batchSize: number
  }
  readonly gatewayAuth: {
    readonly mode: 'none' | 'hmac'
    /** base64; there when the mode is `hmac`. */
    readonly secret?: string
    readonly toleranceSeconds: number
    readonly exemptPaths: readonly string[]
  }
  readonly seed: Seed
  readonly retention: {
    /** Messages whose jobs are all delivered are removed after so many days; 0 keeps them. */
    readonly days: number
  }
}

export interface SeedEntry {
  readonly id: string
  /** Default: the id. */
  readonly name?: string
  /** Default: a random one. */
  readonly token?: string
}

/** What exists from the first start on. */
export interface Seed {
  readonly channels: readonly SeedEntry[]
  readonly producers: readonly SeedEntry[]
  readonly consumers: readonly (SeedEntry & {
    readonly channel: string
    readonly callbackUrl: string
    readonly type?: 'push' | 'pull'
  })[]
}

/** The settings that differ from the defaults. */
export type WebhookOptions = Partialised<WebhookSettings>

type Partialised<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [Key in keyof T]?: Partialised<T[Key]> }
    : T

export const DEFAULT_WEBHOOK_SETTINGS: WebhookSettings = {
  openManagement: false,
  api: { exposeTokens: true },
  delivery: {
    maxQueue: 10_000,
    workers: 200,
    consumerWorkers: 50,
    maxRetry: 5,
    backoffSeconds: [5, 30, 60],
    rationalDelaySeconds: 2,
    tokenHeader: 'X-Broker-Consumer-Token',
    userAgent: 'Webhook Message Broker',
    timeoutSeconds: 30,
    refusedAddresses: REFUSED_BY_DEFAULT,
    breaker: { failures: 100, forSeconds: 60, pauseSeconds: 5, longestPauseSeconds: 60 },
  },
  recovery: { enabled: true },
  scheduler: { intervalMs: 5_000, minDelayMinutes: 2, batchSize: 100 },
  dlq: { summaryIntervalSeconds: 600, batchSize: 1_000 },
  gatewayAuth: {
    mode: 'none',
    toleranceSeconds: 300,
    exemptPaths: ['/_status', '/metrics', '/debug/pprof/'],
  },
  seed: { channels: [], producers: [], consumers: [] },
  retention: { days: 0 },
}

/** The defaults, with what is given in their place. */
export function webhookSettings(options: WebhookOptions): WebhookSettings {
  const { delivery, ...defaults } = DEFAULT_WEBHOOK_SETTINGS
  return {
    openManagement: options.openManagement ?? defaults.openManagement,
    api: { ...defaults.api, ...options.api },
    delivery: {
      ...delivery,
      ...options.delivery,
      breaker: { ...delivery.breaker, ...options.delivery?.breaker },
    },
    recovery: { ...defaults.recovery, ...options.recovery },
    scheduler: { ...defaults.scheduler, ...options.scheduler },
    dlq: { ...defaults.dlq, ...options.dlq },
    gatewayAuth: { ...defaults.gatewayAuth, ...options.gatewayAuth },
    seed: { ...defaults.seed, ...options.seed },
    retention: { ...defaults.retention, ...options.retention },
  }
}

const CLAIM_GRACE_SECONDS = 0.25

/** How long a claim holds: a little longer than an attempt may take, and one round of recovery more. */
export const claimUs = ({ timeoutSeconds, rationalDelaySeconds }: WebhookSettings['delivery']): bigint =>
  microseconds(timeoutSeconds + CLAIM_GRACE_SECONDS + rationalDelaySeconds)

/** What the parts of webhooks work with. */
export interface Parts {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly xids: Xids
  readonly registers: Registers
  readonly settings: WebhookSettings
  /** Jobs of these push consumers are ready; called after the commit. */
  readonly onJobs: (consumers: ReadonlySet<number>) => void
}

/** What those need who deliver. */
export type CourierParts = Omit<Parts, 'xids' | 'onJobs'>
