/** The configuration of a demo: where it listens and who may come in is the user's, what it delivers is the demo's own. */
import { randomUUID } from 'node:crypto'
import type { Config } from '../config/index.ts'
import { REFUSED_BY_DEFAULT } from '../core/address-ranges.ts'
import { DEFINITIONS } from './engine-roles.ts'
import { PATHS } from './receiver.ts'

export const OUTBOX = 'shop-events'
/** A table of its own: rows of an application in the same database stay where they are. */
export const OUTBOX_TABLE = 'demo_outbox_messages'

export const CHANNEL = 'shop-events'
export const PRODUCER = 'shop'
export const CONSUMERS = ['storefront', 'warehouse'] as const

/** Longer than the past that is filed; what is resolved is gone then, so that a demo does not grow for ever. */
const RETENTION_DAYS = 3

export interface DemoTerms {
  /** The user named a store; without one nothing is left behind. */
  readonly storeIsGiven: boolean
  /** The user chose a log level; without one the log tells only what went wrong with the server itself. */
  readonly logLevelIsGiven: boolean
}

/** The demo's configuration, made of the user's; partners answer at `receiverUrl`. */
export function demoConfig(config: Config, terms: DemoTerms, receiverUrl: string): Config {
  return {
    ...config,
    store: terms.storeIsGiven ? config.store : 'sqlite::memory:',
    log: terms.logLevelIsGiven ? config.log : { ...config.log, level: 'error' },
    console:
      config.console.environment === 'local' ? { environment: 'demo', colour: 'violet' } : config.console,
    engines: {
      context: 'publisher',
      definitions: DEFINITIONS,
      tables: { ...config.engines.tables, retentionDays: RETENTION_DAYS },
    },
    outbox: [
      {
        name: OUTBOX,
        table: OUTBOX_TABLE,
        transport: `${receiverUrl}${PATHS.erp}`,
        pollIntervalSeconds: 2,
        maxRetries: 2,
        baseRetryDelaySeconds: 4,
        // While the past is filed, minutes pass in a moment.
        deliveryTimeoutSeconds: 300,
        claimSeconds: 600,
        onDead: 'skip',
        retention: { processed: 1, keys: 1 },
      },
    ],
    webhooks: {
      ...config.webhooks,
      delivery: {
        ...config.webhooks.delivery,
        maxRetry: 2,
        backoffSeconds: [4, 8],
        // Its receivers are on this machine, whatever the configuration keeps callbacks away from.
        refusedAddresses: REFUSED_BY_DEFAULT,
        // Low enough that a pause is seen when a partner is away for two minutes.
        breaker: { failures: 10, forSeconds: 40, pauseSeconds: 20, longestPauseSeconds: 40 },
      },
      seed: {
        // New tokens at every start: nobody who knows the demo knows them.
        channels: [{ id: CHANNEL, name: 'Events of the shop', token: randomUUID() }],
        producers: [{ id: PRODUCER, name: 'The shop', token: randomUUID() }],
        consumers: CONSUMERS.map((id) => ({
          id,
          channel: CHANNEL,
          callbackUrl: `${receiverUrl}${PATHS[id]}`,
          token: randomUUID(),
        })),
      },
      retention: { days: 1 },
    },
    kafka: {},
  }
}
