/**
 * How webhooks behave: the section `webhooks` of a configuration, and what more than one of its keys decides. A value that is out of
 * range stops the start: retries that are not those that were asked for would show only when messages die.
 */
import Type, { type Static } from 'typebox'
import { Value } from 'typebox/value'
import { ADDRESS_RANGE_FORM, addressRanges, REFUSED_BY_DEFAULT } from '../../core/address-ranges.ts'
import { type Clock, microseconds } from '../../core/clock.ts'
import { hasControlCharacter } from '../../core/content.ts'
import type { Log } from '../../core/log.ts'
import { shown } from '../../core/settings/config-error.ts'
import { withDefaults } from '../../core/settings/given.ts'
import {
  type Fixed,
  type Given,
  oneOf,
  positiveNumber,
  section,
  wholeNumber,
  yesOrNo,
} from '../../core/settings/kinds.ts'
import type { Xids } from '../../core/xid.ts'
import type { Registers } from '../../letters/registers.ts'
import type { Database } from '../../store/database.ts'
import { isStorable, parseCallbackUrl } from './registry/texts.ts'
import { CONSUMER_TYPES, DELIVERY_HEADERS } from './webhook.ts'

const DAY = 86_400
const YEAR = 365 * DAY
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

const STORABLE = '1 to 255 characters, none of them U+0000'
const id = () =>
  Type.Refine(
    Type.String({ minLength: 1, description: '1 to 255 characters, no control characters' }),
    (text) => isStorable(text) && !hasControlCharacter(text),
  )
const token = () =>
  Type.Refine(Type.String({ minLength: 1, description: STORABLE, secret: true }), (text) => isStorable(text))

/** The name is the id unless given, the token a random one. */
const SEED_ENTRY = { id: id(), name: Type.Optional(id()), token: Type.Optional(token()) }
const SEED_FORM = 'a mapping with id, name and token'

/** What every delivery, or its connection, has already. */
const TAKEN_HEADERS: ReadonlySet<string> = new Set([
  ...DELIVERY_HEADERS,
  'x-broker-channel-id',
  'x-broker-consumer-id',
  'x-broker-message-id',
  'x-broker-message-priority',
  'x-broker-metadata-headers',
])

/** What a path without a signature may be: nothing in it is left for anybody to decode or to resolve. */
const EXEMPT_PATH = /^\/(?!\/)(?:(?!(?:^|\/)\.{1,2}(?:\/|$))(?!\/\/)[^\s?#%\\])*$/

export const WebhooksSchema = section({
  /** The management calls without tokens of their own stay open when the server has tokens. */
  openManagement: yesOrNo(false),
  /** Whether views of producers, channels and consumers show their tokens. */
  api: section({ exposeTokens: yesOrNo(true) }),
  delivery: section({
    /** Jobs that this server may have claimed at a time, whatever the number of workers. */
    maxQueue: wholeNumber(1, 1_000_000_000, 10_000),
    /** Attempts of this server at the same time. */
    workers: wholeNumber(1, 10_000, 200),
    /** Attempts at one consumer at the same time, unless the consumer has its own limit. */
    consumerWorkers: wholeNumber(1, 10_000, 50),
    /** Attempts of a job are one more than this. */
    maxRetry: wholeNumber(0, 255, 5),
    backoffSeconds: Type.Array(positiveNumber(YEAR), {
      default: [5, 30, 60],
      description: 'a list of numbers above 0, at least one',
    }),
    /** How often what is due is looked for, and the grace of deadlines. */
    rationalDelaySeconds: positiveNumber(3_600, 2),
    tokenHeader: Type.Refine(
      Type.String({
        pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/,
        default: 'X-Broker-Consumer-Token',
        description: 'the name of a header that deliveries do not have anyway',
      }),
      (name) => !TAKEN_HEADERS.has(name.toLowerCase()),
    ),
    userAgent: Type.String({
      pattern: /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/,
      default: 'Webhook Message Broker',
      description: '1 to 255 printable ASCII characters',
    }),
    /** For the whole of an attempt: connecting, sending, waiting for the status. */
    timeoutSeconds: positiveNumber(DAY, 30),
    /** Callback addresses that are refused. */
    refusedAddresses: Type.Array(Type.String({ description: ADDRESS_RANGE_FORM }), {
      default: [...REFUSED_BY_DEFAULT],
      description: 'a list of address ranges',
    }),
    breaker: section({
      /** So many failures in a row, and nothing else for `forSeconds`, pause a consumer. 0: never. */
      failures: wholeNumber(0, 1_000_000, 100),
      forSeconds: positiveNumber(DAY, 60),
      /** The first pause; each one after a failed probe is twice as long, up to `longestPauseSeconds`. */
      pauseSeconds: positiveNumber(DAY, 5),
      longestPauseSeconds: positiveNumber(DAY, 60),
    }),
  }),
  recovery: section({ enabled: yesOrNo(true) }),
  scheduler: section({
    intervalMs: wholeNumber(10, 3_600_000, 5_000),
    minDelayMinutes: wholeNumber(0, 525_600, 2),
    batchSize: wholeNumber(1, 10_000, 100),
  }),
  dlq: section({
    /** How often counts are folded, at the latest. The numbers never depend on it. */
    summaryIntervalSeconds: positiveNumber(DAY, 600),
    /** Jobs of one transaction when all dead jobs of a consumer are requeued or purged. */
    batchSize: wholeNumber(1, 10_000, 1_000),
  }),
  gatewayAuth: section({
    mode: oneOf(['none', 'hmac'], 'none'),
    /** There when the mode is `hmac`. */
    secret: Type.Optional(
      Type.Refine(
        Type.String({ description: 'a secret in base64, not an empty one', secret: true }),
        (text) => text !== '' && BASE64.test(text),
      ),
    ),
    toleranceSeconds: wholeNumber(1, DAY, 300),
    exemptPaths: Type.Array(
      Type.String({
        pattern: EXEMPT_PATH,
        description: "a path such as '/_status', without query, '%', '//' and '..'",
      }),
      { default: ['/_status', '/metrics', '/debug/pprof/'], description: 'a list of paths' },
    ),
  }),
  /** What exists from the first start on. */
  seed: section({
    channels: Type.Array(section(SEED_ENTRY, SEED_FORM), {
      default: [],
      description: 'a list of channels',
    }),
    producers: Type.Array(section(SEED_ENTRY, SEED_FORM), {
      default: [],
      description: 'a list of producers',
    }),
    consumers: Type.Array(
      section(
        {
          ...SEED_ENTRY,
          channel: id(),
          callbackUrl: Type.Refine(
            Type.String({ description: "'http://…' or 'https://…'", secret: true }),
            (text) => parseCallbackUrl(text) !== null,
          ),
          type: Type.Optional(oneOf(CONSUMER_TYPES)),
        },
        'a mapping with id, channel, callbackUrl, name, token and type',
      ),
      { default: [], description: 'a list of consumers' },
    ),
  }),
  /** Messages whose jobs are all delivered are removed after so many days; 0 keeps them. */
  retention: section({ days: wholeNumber(0, 36_500, 0) }),
})

export type WebhookSettings = Fixed<Static<typeof WebhooksSchema>>

/** The settings that differ from the defaults. */
export type WebhookOptions = Given<WebhookSettings>

export type Seed = WebhookSettings['seed']
export type SeedEntry = Seed['producers'][number]

export const DEFAULT_WEBHOOK_SETTINGS: WebhookSettings = Value.Create(WebhooksSchema)

/** The defaults, with what is given in their place. */
export const webhookSettings = (options: WebhookOptions): WebhookSettings =>
  withDefaults(DEFAULT_WEBHOOK_SETTINGS, options)

/** What only several keys together can tell, of a section whose keys are right one by one. */
export const problemsOfWebhooks = ({ delivery, gatewayAuth, seed }: WebhookOptions): readonly string[] =>
  [
    ...problemsOfDelivery(delivery ?? {}),
    ...(gatewayAuth?.mode === 'hmac' && gatewayAuth.secret === undefined
      ? ["gatewayAuth.secret: is missing; mode 'hmac' needs one, make it with: openssl rand -base64 32"]
      : []),
    ...problemsOfSeed({ ...DEFAULT_WEBHOOK_SETTINGS.seed, ...seed }),
  ].map((problem) => `webhooks.${problem}`)

function problemsOfDelivery(given: NonNullable<WebhookOptions['delivery']>): readonly string[] {
  const { backoffSeconds, refusedAddresses = [], breaker } = given
  const problems: string[] = []
  if (backoffSeconds?.length === 0) problems.push('delivery.backoffSeconds: must hold at least one number')
  for (const [index, range] of refusedAddresses.entries()) {
    const ranges = addressRanges([range])
    if ('problem' in ranges) problems.push(`delivery.refusedAddresses[${index}]: ${ranges.problem}`)
  }
  const { pauseSeconds, longestPauseSeconds } = { ...DEFAULT_WEBHOOK_SETTINGS.delivery.breaker, ...breaker }
  if (longestPauseSeconds < pauseSeconds) {
    problems.push(
      `delivery.breaker.longestPauseSeconds: ${longestPauseSeconds} is not allowed; allowed: at least pauseSeconds, which is ${pauseSeconds}`,
    )
  }
  return problems
}

function problemsOfSeed(seed: Seed): readonly string[] {
  const problems = Object.entries(seed).flatMap(([kind, entries]) => {
    const places = entries.map((entry) =>
      JSON.stringify(['channel' in entry ? entry.channel : null, entry.id]),
    )
    return places.flatMap((place, index) => {
      const first = places.indexOf(place)
      return first < index ? [`seed.${kind}[${index}].id: is the same as that of seed.${kind}[${first}]`] : []
    })
  })
  const channels = new Set(seed.channels.map(({ id }) => id))
  for (const [index, { channel }] of seed.consumers.entries()) {
    if (channels.has(channel)) continue
    problems.push(`seed.consumers[${index}].channel: ${shown(channel)} is none of seed.channels`)
  }
  return problems
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
