/**
 * The keys of the section `webhooks`, and what more than one key decides. Defaults are those of the webhooks themselves. A value
 * that is out of range stops the start: retries that are not those that were asked for would show only when messages die.
 */
import Type, { type Static } from 'typebox'
import { ADDRESS_RANGE_FORM, addressRanges } from '../../core/address-ranges.ts'
import { hasControlCharacter } from '../../core/content.ts'
import { shown } from '../../core/settings/config-error.ts'
import { oneOf, positiveNumber, section, wholeNumber, yesOrNo } from '../../core/settings/kinds.ts'
import { parseCallbackUrl } from './registry/callback-url.ts'
import { isStorable } from './registry/texts.ts'
import { DEFAULT_WEBHOOK_SETTINGS as DEFAULTS, type WebhookSettings } from './settings.ts'
import { CONSUMER_TYPES } from './webhook.ts'

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

const SEED_ENTRY = { id: id(), name: Type.Optional(id()), token: Type.Optional(token()) }
const SEED_FORM = 'a mapping with id, name and token'

const { delivery, scheduler, dlq, gatewayAuth } = DEFAULTS

/** What every delivery, or its connection, has already. */
const TAKEN_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'keep-alive',
  'content-length',
  'content-type',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'user-agent',
  'x-request-id',
  'x-broker-channel-id',
  'x-broker-consumer-id',
  'x-broker-message-id',
  'x-broker-message-priority',
  'x-broker-metadata-headers',
])

/** What a path without a signature may be: nothing in it is left for anybody to decode or to resolve. */
const EXEMPT_PATH = /^\/(?!\/)(?:(?!(?:^|\/)\.{1,2}(?:\/|$))(?!\/\/)[^\s?#%\\])*$/

export const WebhooksSchema = section({
  openManagement: yesOrNo(DEFAULTS.openManagement),
  api: section({ exposeTokens: yesOrNo(DEFAULTS.api.exposeTokens) }),
  delivery: section({
    maxQueue: wholeNumber(1, 1_000_000_000, delivery.maxQueue),
    workers: wholeNumber(1, 10_000, delivery.workers),
    consumerWorkers: wholeNumber(1, 10_000, delivery.consumerWorkers),
    maxRetry: wholeNumber(0, 255, delivery.maxRetry),
    backoffSeconds: Type.Array(positiveNumber(YEAR), {
      default: [...delivery.backoffSeconds],
      description: 'a list of numbers above 0, at least one',
    }),
    rationalDelaySeconds: positiveNumber(3_600, delivery.rationalDelaySeconds),
    tokenHeader: Type.Refine(
      Type.String({
        pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/,
        default: delivery.tokenHeader,
        description: 'the name of a header that deliveries do not have anyway',
      }),
      (name) => !TAKEN_HEADERS.has(name.toLowerCase()),
    ),
    userAgent: Type.String({
      pattern: /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/,
      default: delivery.userAgent,
      description: '1 to 255 printable ASCII characters',
    }),
    timeoutSeconds: positiveNumber(DAY, delivery.timeoutSeconds),
    refusedAddresses: Type.Array(Type.String({ description: ADDRESS_RANGE_FORM }), {
      default: [...delivery.refusedAddresses],
      description: 'a list of address ranges',
    }),
    breaker: section({
      failures: wholeNumber(0, 1_000_000, delivery.breaker.failures),
      forSeconds: positiveNumber(DAY, delivery.breaker.forSeconds),
      pauseSeconds: positiveNumber(DAY, delivery.breaker.pauseSeconds),
      longestPauseSeconds: positiveNumber(DAY, delivery.breaker.longestPauseSeconds),
    }),
  }),
  recovery: section({ enabled: yesOrNo(DEFAULTS.recovery.enabled) }),
  scheduler: section({
    intervalMs: wholeNumber(10, 3_600_000, scheduler.intervalMs),
    minDelayMinutes: wholeNumber(0, 525_600, scheduler.minDelayMinutes),
    batchSize: wholeNumber(1, 10_000, scheduler.batchSize),
  }),
  dlq: section({
    summaryIntervalSeconds: positiveNumber(DAY, dlq.summaryIntervalSeconds),
    batchSize: wholeNumber(1, 10_000, dlq.batchSize),
  }),
  gatewayAuth: section({
    mode: oneOf(['none', 'hmac'], gatewayAuth.mode),
    secret: Type.Optional(
      Type.Refine(
        Type.String({ description: 'a secret in base64, not an empty one', secret: true }),
        (text) => text !== '' && BASE64.test(text),
      ),
    ),
    toleranceSeconds: wholeNumber(1, DAY, gatewayAuth.toleranceSeconds),
    exemptPaths: Type.Array(
      Type.String({
        pattern: EXEMPT_PATH,
        description: "a path such as '/_status', without query, '%', '//' and '..'",
      }),
      { default: [...gatewayAuth.exemptPaths], description: 'a list of paths' },
    ),
  }),
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
  retention: section({ days: wholeNumber(0, 36_500, DEFAULTS.retention.days) }),
})

type Given = Readonly<Record<string, unknown>>
type Read = (...path: readonly string[]) => unknown

/** What only several keys together can tell, of a section whose keys are right one by one. */
export function problemsOfWebhooks(given: Given): readonly string[] {
  const read: Read = (...path) => path.reduce<unknown>((value, key) => (value as Given | null)?.[key], given)
  return [...problemsOfDelivery(read), ...problemsOfGateway(read), ...problemsOfSeed(read)]
}

function problemsOfDelivery(read: Read): readonly string[] {
  const problems: string[] = []
  const backoff = read('delivery', 'backoffSeconds')
  if (Array.isArray(backoff) && backoff.length === 0) {
    problems.push('delivery.backoffSeconds: must hold at least one number')
  }
  const refused = read('delivery', 'refusedAddresses')
  for (const [index, range] of (Array.isArray(refused) ? refused : []).entries()) {
    const ranges = addressRanges([String(range)])
    if ('problem' in ranges) problems.push(`delivery.refusedAddresses[${index}]: ${ranges.problem}`)
  }
  const { pauseSeconds, longestPauseSeconds } = delivery.breaker
  const first = Number(read('delivery', 'breaker', 'pauseSeconds') ?? pauseSeconds)
  const longest = Number(read('delivery', 'breaker', 'longestPauseSeconds') ?? longestPauseSeconds)
  if (longest < first) {
    problems.push(
      `delivery.breaker.longestPauseSeconds: ${longest} is not allowed; allowed: at least pauseSeconds, which is ${first}`,
    )
  }
  return problems
}

function problemsOfGateway(read: Read): readonly string[] {
  if (read('gatewayAuth', 'mode') !== 'hmac') return []
  if ((read('gatewayAuth', 'secret') ?? null) !== null) return []
  return ["gatewayAuth.secret: is missing; mode 'hmac' needs one, make it with: openssl rand -base64 32"]
}

function problemsOfSeed(read: Read): readonly string[] {
  const entries = (kind: string): readonly Given[] => {
    const list = read('seed', kind)
    return Array.isArray(list) ? list : []
  }
  const channels = new Set(entries('channels').map((channel) => channel.id))
  const problems = ['channels', 'producers', 'consumers'].flatMap((kind) => {
    const places = entries(kind).map((known) => JSON.stringify([known.channel, known.id]))
    return places.flatMap((place, index) => {
      const first = places.indexOf(place)
      return first < index ? [`seed.${kind}[${index}].id: is the same as that of seed.${kind}[${first}]`] : []
    })
  })
  for (const [index, { channel }] of entries('consumers').entries()) {
    if (channels.has(channel)) continue
    problems.push(`seed.consumers[${index}].channel: ${shown(channel)} is none of seed.channels`)
  }
  return problems
}

/** Fails to compile when the schema and the settings differ. */
export type CheckedWebhooks = Static<typeof WebhooksSchema> extends WebhookSettings ? WebhookSettings : never
