/** How `/api/webhooks` looks in the OpenAPI document. */
import {
  INTEGER,
  objectOf,
  PAGE_QUERY,
  TEXT,
  TEXT_OR_NULL,
  TIME,
  TIME_OR_NULL,
} from '../http/describe-api.ts'
import { BULK_KINDS } from './dead/bulk-runs.ts'
import { CONSUMER_TYPES } from './webhook.ts'

export const LIST_QUERY = {
  channel: { type: 'string', description: 'The id of a channel. Left out: the consumers of all channels' },
  ...PAGE_QUERY,
}

export const RUNS_QUERY = { limit: PAGE_QUERY.limit }

export const CONSUMER_KEY = { channel: TEXT, consumer: TEXT }

/** Beyond this nobody means a limit. */
export const MOST_AT_ONCE = 100_000
export const MOST_PER_SECOND = 1_000_000

export const LIMITS = {
  mostAtOnce: {
    type: ['integer', 'null'],
    minimum: 1,
    maximum: MOST_AT_ONCE,
    description: 'Attempts of a server at the same time',
  },
  mostPerSecond: {
    type: ['number', 'null'],
    exclusiveMinimum: 0,
    maximum: MOST_PER_SECOND,
    description: 'Attempts of a server per second',
  },
}

export const CONSUMER = objectOf({
  id: TEXT,
  channelId: TEXT,
  channelName: TEXT,
  consumerId: TEXT,
  consumerName: TEXT,
  type: { type: 'string', enum: [...CONSUMER_TYPES] },
  callbackUrl: { type: 'string', description: 'Without credentials and query' },
  queued: INTEGER,
  inFlight: INTEGER,
  delivered: INTEGER,
  dead: INTEGER,
  oldestDeadAtUtc: TIME_OR_NULL,
  state: {
    type: 'string',
    enum: ['delivering', 'paused', 'probing'],
    description: 'probing: the pause is over, and one job at a time shows whether the consumer works again',
  },
  pausedSinceUtc: TIME_OR_NULL,
  pausedUntilUtc: TIME_OR_NULL,
  pauseReason: TEXT_OR_NULL,
  ...LIMITS,
  signed: { type: 'boolean' },
  previousSecretSinceUtc: {
    ...TIME_OR_NULL,
    description: 'Since when deliveries are signed with the secret before this one too',
  },
})

export const RUNS = objectOf({
  runs: {
    type: 'array',
    items: objectOf({
      id: TEXT,
      kind: { type: 'string', enum: [...BULK_KINDS] },
      channelId: TEXT,
      consumerId: TEXT,
      expected: {
        type: 'integer',
        description: 'Dead jobs of the consumer at the start; never less than `done`',
      },
      done: INTEGER,
      state: { type: 'string', enum: ['running', 'finished'] },
      by: TEXT,
      startedAtUtc: TIME,
      finishedAtUtc: TIME_OR_NULL,
    }),
  },
})

export const RESUMED = objectOf({
  resumed: { type: 'boolean', description: 'Whether it was paused' },
})
export const SECRET = objectOf({ secret: { type: 'string', description: 'whsec_…, shown this once' } })
export const PURGED = objectOf({ purged: INTEGER })
export const SIGNING = objectOf({})
export const STARTED = objectOf({})
