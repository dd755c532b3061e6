/**
 * How webhooks behave: the section `webhooks` of a configuration, and what more than one of its keys decides. A value that is out of
 * range stops the start: retries that are not those that were asked for would show only when messages die.
 */
import Type, { type Static } from 'typebox'
import { REFUSED_BY_DEFAULT } from '../../core/address-ranges.ts'
import { type Clock, microseconds } from '../../core/clock.ts'
import { hasControlCharacter } from '../../core/content.ts'
import type { Log } from '../../core/log.ts'
import { shown } from '../../core/settings/config-error.ts'
import {
  addressRange,
  type Fixed,
  type Given,
  list,
  oneOf,
  positiveNumber,
  section,
  text,
  wholeNumber,
  yesOrNo,
} from '../../core/settings/kinds.ts'
import { readSettings, withDefaults } from '../../core/settings/read.ts'
import type { Xids } from '../../core/xid.ts'
import type { Registers } from '../../letters/registers.ts'
import type { Database } from '../../store/database.ts'
import { isStorable, parseCallbackUrl } from './registry/texts.ts'
import { CONSUMER_TYPES, DELIVERY_HEADERS } from './webhook.ts'

const DAY = 86_400
const YEAR = 365 * DAY
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

const id = (description: string) =>
  text(description, {
    allowed: '1 to 255 characters, no control characters',
    is: (name) => name !== '' && isStorable(name) && !hasControlCharacter(name),
  })

const SEED_ENTRY = {
  id: id('What it is known by.'),
  name: Type.Optional({ ...id('What it is called.'), otherwise: 'its id' }),
  token: Type.Optional(
    text('Its token.', {
      allowed: '1 to 255 characters, none of them U+0000',
      otherwise: 'a random one',
      secret: true,
      is: (token) => token !== '' && isStorable(token),
    }),
  ),
}
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

const SeedSchema = section('What exists from the first start on.', {
  channels: list('Channels.', section('A channel.', SEED_ENTRY, SEED_FORM), {
    default: [],
    allowed: 'a list of channels',
  }),
  producers: list('Producers.', section('A producer.', SEED_ENTRY, SEED_FORM), {
    default: [],
    allowed: 'a list of producers',
  }),
  consumers: list(
    'Consumers.',
    section(
      'A consumer.',
      {
        ...SEED_ENTRY,
        channel: id('The id of its channel.'),
        callbackUrl: text('Where its jobs are pushed to.', {
          allowed: "'http://…' or 'https://…'",
          secret: true,
          is: (url) => parseCallbackUrl(url) !== null,
        }),
        type: Type.Optional(
          oneOf('Whether jobs are pushed to it or pulled by it.', CONSUMER_TYPES, { otherwise: 'push' }),
        ),
      },
      'a mapping with id, channel, callbackUrl, name, token and type',
    ),
    { default: [], allowed: 'a list of consumers' },
  ),
})

export const WebhooksSchema = section('Broadcasts to channels, and their delivery to consumers.', {
  openManagement: yesOrNo('Whether calls without tokens of their own stay open once the server has tokens.', {
    default: false,
  }),
  api: section('The calls.', {
    exposeTokens: yesOrNo('Whether views of producers, channels and consumers show their tokens.', {
      default: true,
    }),
  }),
  delivery: section('How jobs are pushed.', {
    maxQueue: wholeNumber('Push jobs that this server may have claimed at a time.', {
      from: 1,
      to: 1_000_000_000,
      default: 10_000,
    }),
    workers: wholeNumber('Attempts of this server at a time.', { from: 1, to: 10_000, default: 200 }),
    consumerWorkers: wholeNumber(
      'Attempts at one consumer at a time, unless the consumer has its own limit.',
      { from: 1, to: 10_000, default: 50 },
    ),
    maxRetry: wholeNumber('Retries: a job has one attempt more.', { from: 0, to: 255, default: 5 }),
    backoffSeconds: list(
      'Waits before the retries; after the list its last value two, three … times.',
      positiveNumber('One wait.', { to: YEAR }),
      { default: [5, 30, 60], allowed: 'a list of numbers above 0, at least one' },
    ),
    rationalDelaySeconds: positiveNumber('How often what is due is looked for, and the grace of deadlines.', {
      to: 3_600,
      default: 2,
    }),
    tokenHeader: text("The header with the consumer's token.", {
      pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/,
      default: 'X-Broker-Consumer-Token',
      allowed: 'the name of a header that deliveries do not have anyway',
      is: (name) => !TAKEN_HEADERS.has(name.toLowerCase()),
    }),
    userAgent: text('The user agent of deliveries.', {
      pattern: /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/,
      default: 'Webhook Message Broker',
      allowed: '1 to 255 printable ASCII characters',
    }),
    timeoutSeconds: positiveNumber(
      'For the whole of an attempt: connecting, sending, waiting for the status.',
      {
        to: DAY,
        default: 30,
      },
    ),
    refusedAddresses: list(
      'Callback addresses that are never called; the list is taken as written, and an empty one refuses nothing.',
      addressRange('One range.'),
      { default: [...REFUSED_BY_DEFAULT], allowed: 'a list of address ranges' },
    ),
    breaker: section('When a consumer is paused.', {
      failures: wholeNumber(
        'So many failures in a row, and nothing else for `forSeconds`, pause a consumer; 0: never.',
        {
          from: 0,
          to: 1_000_000,
          default: 100,
        },
      ),
      forSeconds: positiveNumber('For how long there must have been nothing but failures.', {
        to: DAY,
        default: 60,
      }),
      pauseSeconds: positiveNumber('The first pause; each one after a failed probe is twice as long.', {
        to: DAY,
        default: 5,
      }),
      longestPauseSeconds: positiveNumber('The longest pause.', { to: DAY, default: 60 }),
    }),
  }),
  recovery: section('What is done about attempts that failed.', {
    enabled: yesOrNo(
      'Whether this server sees to retries and deadlines; without it nothing is tried again by it.',
      {
        default: true,
      },
    ),
  }),
  scheduler: section('Broadcasts for later.', {
    intervalMs: wholeNumber('How often schedules are looked at.', {
      from: 10,
      to: 3_600_000,
      default: 5_000,
    }),
    minDelayMinutes: wholeNumber('How far ahead a schedule must lie.', { from: 0, to: 525_600, default: 2 }),
    batchSize: wholeNumber('Schedules that are taken at once.', { from: 1, to: 10_000, default: 100 }),
  }),
  dlq: section('Dead jobs.', {
    summaryIntervalSeconds: positiveNumber(
      'How often counts are folded, at the latest; no number depends on it.',
      { to: DAY, default: 600 },
    ),
    batchSize: wholeNumber('Jobs of one transaction when all dead jobs are requeued or purged.', {
      from: 1,
      to: 10_000,
      default: 1_000,
    }),
  }),
  gatewayAuth: section('Signatures of a gateway in front of this part.', {
    mode: oneOf('Whether every call needs a signature.', ['none', 'hmac'], { default: 'none' }),
    secret: Type.Optional(
      text('The secret of signatures.', {
        allowed: 'a secret in base64, not an empty one',
        otherwise: "none; mode 'hmac' needs one",
        secret: true,
        is: (secret) => secret !== '' && BASE64.test(secret),
      }),
    ),
    toleranceSeconds: wholeNumber('How old a signature may be.', { from: 1, to: DAY, default: 300 }),
    exemptPaths: list(
      'Paths that need no signature, with all below them.',
      Type.String({
        pattern: EXEMPT_PATH,
        allowed: "a path such as '/_status', without query, '%', '//' and '..'",
      }),
      { default: ['/_status', '/metrics', '/debug/pprof/'], allowed: 'a list of paths' },
    ),
  }),
  seed: SeedSchema,
  retention: section('What is removed.', {
    days: wholeNumber('Days after which messages go whose jobs are all delivered; 0 keeps them.', {
      from: 0,
      to: 36_500,
      default: 0,
    }),
  }),
})

export type WebhookSettings = Fixed<Static<typeof WebhooksSchema>>

/** The settings that differ from the defaults. */
export type WebhookOptions = Given<WebhookSettings>

export type Seed = WebhookSettings['seed']
export type SeedEntry = Seed['producers'][number]

export const DEFAULT_WEBHOOK_SETTINGS = withDefaults(WebhooksSchema, {})

/** The defaults, with what is given in their place; refuses what cannot be. */
export const webhookSettings = (options: WebhookOptions): WebhookSettings =>
  readSettings(WebhooksSchema, options, 'webhooks', problemsOfWebhooks)

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
  const { backoffSeconds, breaker } = given
  const problems: string[] = []
  if (backoffSeconds?.length === 0) problems.push('delivery.backoffSeconds: must hold at least one number')
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
