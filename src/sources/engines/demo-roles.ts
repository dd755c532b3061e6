/**
 * The engines of the invented shop: their messages, and what is wrong with those they cannot take. Errors vary in
 * numbers and names, and each cause still has one signature. Past and present use the same judgements.
 */
import type { Instant } from '../../core/clock.ts'
import { signatureOf } from '../../core/signature.ts'
import type { ErrorDescription } from '../../core/thrown.ts'
import { formatTimestamp } from '../../core/timestamp.ts'
import type { Chance } from '../../demo/story/chance.ts'
import { CUSTOMERS, cents, json, linesOf, thrown } from '../../demo/story/shop.ts'
import { type DemoSignatures, type DemoStory, GATEWAY, type Occasion } from '../../demo/story/story.ts'
import type { EngineMessage } from './options.ts'

export interface EngineRole {
  readonly name: string
  readonly operation: string
  readonly queue: string
  readonly maxAttempts: number
  readonly weight: number
  /** Share of messages its worker cannot take. */
  readonly sickShare: number
  readonly runMs: number
  /** A retry as it is succeeds. */
  readonly heals: boolean
  message(occasion: Occasion, isSick: boolean): Buffer
  /** Null when nothing is wrong. */
  judge(message: EngineMessage, world: EngineWorld): ErrorDescription | null
}

export interface EngineWorld extends Pick<DemoStory, 'isOut'> {
  readonly periods: Periods
}

/** Invoices that found their period locked. */
export class Periods {
  readonly #died = new Set<number>()
  #liveFrom = 0

  /** Older invoices died in the filed past, or under an earlier run of the demo. */
  begin(now: Instant): void {
    this.#liveFrom = invoiceNumber(now)
  }

  isLocked(invoice: string): boolean {
    const number = numberOf(invoice)
    return number >= this.#liveFrom && !this.#died.has(number)
  }

  /** Sent back, it finds its period open. */
  died(invoice: string): void {
    this.#died.add(numberOf(invoice))
  }

  posted(invoice: string): void {
    this.#died.delete(numberOf(invoice))
  }
}

const numberOf = (invoice: string): number => Number(invoice.slice('INV-'.length))

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

const instanceId = (chance: Chance): string => `shop-${String(chance.whole(1, 40)).padStart(3, '0')}`

/** Ascending with time, over restarts too. */
const invoiceNumber = (now: Instant): number => Number(now / 1_000_000n) - 1_700_000_000

const monthOf = (now: Instant, back: 0 | 1): string => {
  const [year = 0, month = 0] = formatTimestamp(now).split('-').map(Number)
  const at = year * 12 + month - 1 - back
  return `${Math.floor(at / 12)}-${String((at % 12) + 1).padStart(2, '0')}`
}

/** Heals: whoever sends the invoice again finds the period open. */
const periodLocked = (invoice: string, period: string): ErrorDescription =>
  thrown(
    'PeriodLocked',
    `invoice ${invoice} cannot be posted: period ${period} is locked by the closing run`,
    [
      'Ledger.post (/srv/billing/dist/ledger.js:132:11)',
      'async issueInvoice (/srv/billing/dist/issue.js:57:3)',
    ],
  )

/** An invoice of the month before meets a period that is being closed. */
export const billing: EngineRole = {
  name: 'billing',
  operation: 'issue',
  queue: 'invoices',
  maxAttempts: 3,
  weight: 5,
  sickShare: 0.3,
  runMs: 180,
  heals: true,
  message({ chance, now }, isSick) {
    const net = chance.whole(1_000, 90_000)
    return json({
      invoice: `INV-${invoiceNumber(now)}`,
      issuedAt: formatTimestamp(now),
      period: monthOf(now, isSick ? 1 : 0),
      customer: chance.pick(CUSTOMERS),
      net: cents(net),
      vat: cents(Math.round(net * 0.19)),
      currency: 'EUR',
      lines: linesOf(chance, chance.whole(1, 8)),
      correlationId: chance.uuid(),
    })
  },
  judge(message, { periods }) {
    const number = text(message.invoice)
    const period = text(message.period)
    const isOld = period < text(message.issuedAt).slice(0, period.length)
    return isOld && periods.isLocked(number) ? periodLocked(number, period) : null
  },
}

/** An old system sends no JSON. */
export const oldInvoice = ({ chance, now }: Occasion): Buffer =>
  Buffer.from(
    `<?xml version="1.0" encoding="UTF-8"?>\n<invoice number="${invoiceNumber(now)}">\n  <customer>${chance.pick(CUSTOMERS).name}</customer>\n  <net currency="EUR">${cents(chance.whole(1_000, 90_000))}</net>\n</invoice>\n`,
  )

const gatewayTimeout = (host: number): ErrorDescription =>
  thrown('ConnectTimeoutError', `connect ETIMEDOUT 203.0.113.${host}:443 after 10000 ms`, [
    'TCPConnectWrap.afterConnect [as oncomplete] (node:net:1637:16)',
    'async PaymentGateway.charge (/srv/payments/dist/gateway.js:88:19)',
    'async chargeOrder (/srv/payments/dist/charge.js:41:5)',
  ])

/** Fails in storms, when the gateway does not answer. */
export const payments: EngineRole = {
  name: 'payments',
  operation: 'charge',
  queue: 'payments',
  maxAttempts: 2,
  weight: 5,
  sickShare: 0,
  runMs: 420,
  heals: true,
  /** The account is beyond what a double can hold: its digits must survive. */
  message({ chance, now }) {
    const rest = JSON.stringify({
      payment: `pay_${chance.hex(16)}`,
      requestedAt: formatTimestamp(now),
      account: '@account',
      amount: { value: chance.whole(990, 48_000), currency: 'EUR' },
      method: chance.pick(['card', 'card', 'sepa', 'invoice']),
      customer: chance.pick(CUSTOMERS).email,
      correlationId: chance.uuid(),
    })
    const account = 9_007_199_254_740_993n + BigInt(chance.whole(0, 4_000_000_000)) * 2n
    return Buffer.from(rest.replace('"@account"', String(account)))
  },
  judge: (message, world) => (world.isOut(GATEWAY) ? gatewayTimeout(text(message.payment).length) : null),
}

/** Never heals: the message lacks a field. */
const noSite = (): ErrorDescription =>
  thrown('TypeError', "Cannot read properties of undefined (reading 'region')", [
    'clusterFor (/srv/provisioning/dist/placement.js:23:32)',
    'async registerInstance (/srv/provisioning/dist/register.js:71:21)',
    'process.processTicksAndRejections (node:internal/process/task_queues:105:5)',
  ])

/** Registers a shop's instance; one without a region is more than its worker can take. */
export const provisioning: EngineRole = {
  name: 'provisioning',
  operation: 'instance-registered',
  queue: 'webhook-queue',
  maxAttempts: 2,
  weight: 3,
  sickShare: 0.3,
  runMs: 60,
  heals: false,
  message: ({ chance, now }, isSick) =>
    json({
      instanceId: instanceId(chance),
      plan: chance.pick(['starter', 'business', 'enterprise']),
      registeredAt: formatTimestamp(now),
      owner: chance.pick(CUSTOMERS),
      ...(isSick ? {} : { site: { region: chance.pick(['eu-central', 'eu-west', 'us-east']) } }),
      correlationId: chance.uuid(),
    }),
  judge: ({ site }) => (site === undefined ? noSite() : null),
}

const LOST_VAULT = 'kv-north-2'

/** Replaces a key in a vault. */
const hmac: EngineRole = {
  name: 'hmac',
  operation: 'rotate',
  queue: 'hmac-rotation-queue',
  maxAttempts: 3,
  weight: 2,
  sickShare: 0.25,
  runMs: 90,
  heals: false,
  message: ({ chance }, isSick) =>
    json({
      instanceId: instanceId(chance),
      keyId: `hk_${chance.hex(12)}`,
      vault: isSick ? LOST_VAULT : 'kv-north-1',
      algorithm: 'HMAC-SHA256',
      correlationId: chance.uuid(),
    }),
  judge: ({ vault }) =>
    vault === LOST_VAULT
      ? thrown('Error', `connect ECONNREFUSED 10.20.7.${vault.length}:8200`, [
          'TCPConnectWrap.afterConnect [as oncomplete] (node:net:1637:16)',
          'async VaultClient.write (/srv/rotation/dist/vault.js:64:14)',
        ])
      : null,
}

const BLOCKED_DOMAIN = 'checkout.shop.example'

/** Renews a certificate. */
const tls: EngineRole = {
  name: 'tls',
  operation: 'renew',
  queue: 'tls-rotation-queue',
  maxAttempts: 2,
  weight: 2,
  sickShare: 0.2,
  runMs: 700,
  heals: false,
  message: ({ chance, now }, isSick) =>
    json({
      instanceId: instanceId(chance),
      domain: isSick ? BLOCKED_DOMAIN : `shop-${chance.whole(1, 90)}.example`,
      challenge: 'dns-01',
      checkedAt: formatTimestamp(now),
      correlationId: chance.uuid(),
    }),
  judge: ({ domain }) =>
    domain === BLOCKED_DOMAIN
      ? thrown('AcmeError', `urn:ietf:params:acme:error:rateLimited: too many certificates for "${domain}"`, [
          'AcmeOrder.finalize (/srv/tls/dist/acme.js:210:13)',
          'async renew (/srv/tls/dist/renew.js:38:22)',
        ])
      : null,
}

/** Severities are 1 to 4. */
const alerts: EngineRole = {
  name: 'alerts',
  operation: 'process',
  queue: 'monitor-alerts-queue',
  maxAttempts: 2,
  weight: 3,
  sickShare: 0.2,
  runMs: 25,
  heals: false,
  message: ({ chance, now }, isSick) =>
    json({
      instanceId: instanceId(chance),
      alertId: `al-${chance.hex(8)}`,
      severity: isSick ? 'sev5' : `sev${chance.whole(1, 4)}`,
      rule: chance.pick(['latency-p99', 'disk-free', 'error-ratio', 'certificate-age']),
      firedAt: formatTimestamp(now),
      labels: {
        cluster: chance.pick(['north', 'south']),
        team: 'shop',
        runbook: 'https://example.org/runbook',
      },
      correlationId: chance.uuid(),
    }),
  judge: ({ severity }) =>
    severity === 'sev5'
      ? thrown(
          'SchemaViolation',
          `alert does not match schema alert/v3: /severity must be one of sev1, sev2, sev3, sev4, got "${severity}"`,
          [
            'validate (/srv/alerts/dist/schema.js:19:11)',
            'async processAlert (/srv/alerts/dist/process.js:12:3)',
          ],
        )
      : null,
}

export const ENGINE_ROLES: readonly EngineRole[] = [billing, payments, provisioning, hmac, tls, alerts]

export const DEMO_SIGNATURES: DemoSignatures = {
  healingSignature: signatureOf(periodLocked('INV-1', '2026-01')).fingerprint,
  stormSignature: signatureOf(gatewayTimeout(1)).fingerprint,
}

/** Its letters return when sent back as they are. */
export const RETURNING_SIGNATURE = signatureOf(noSite()).fingerprint
