/**
 * The engines of the invented shop: what their messages are, what is wrong with those that they cannot take, and their workers. The
 * past is filed from the same judgements by which workers fail later.
 */
import type { ErrorDescription } from '../core/thrown.ts'
import { pause } from '../core/waiting.ts'
import type { Office } from '../office.ts'
import type { EngineSetting } from '../queues/engines/engine-directory.ts'
import type { Engine } from '../sources/engines/engine.ts'
import type { EngineMessage } from '../sources/engines/options.ts'
import type { Chance } from './chance.ts'
import { alert, certificate, invoice, keyRotation, type Occasion, payment, registration } from './payloads.ts'
import {
  errorOf,
  gatewayTimeout,
  noSite,
  periodLocked,
  rateLimited,
  schemaViolation,
  vaultRefused,
} from './troubles.ts'
import type { World } from './world.ts'

export interface EngineRole {
  readonly name: string
  readonly operation: string
  readonly queue: string
  readonly maxAttempts: number
  /** How often it gets a message, compared with the others. */
  readonly weight: number
  /** How many of its messages its worker cannot take. */
  readonly sickShare: number
  /** The longest that a run takes. */
  readonly runMs: number
  /** What is sent back as it is succeeds. */
  readonly heals: boolean
  well(occasion: Occasion): Buffer
  sick(occasion: Occasion): Buffer
  /** What goes wrong with a message now; null when nothing does. */
  judge(message: EngineMessage, world: World): ErrorDescription | null
}

/** Engines beside the presets. */
export const DEFINITIONS = {
  billing: { queue: 'invoices', operations: ['issue'] },
  payments: { queue: 'payments', operations: ['charge'] },
} as const satisfies Readonly<Record<string, EngineSetting>>

/** The shop's instance that a message is for, or else the customer. */
export function instanceOf({ instanceId, customer }: EngineMessage): unknown {
  if (instanceId !== undefined) return instanceId
  return typeof customer === 'object' && customer !== null && 'email' in customer ? customer.email : customer
}

const BLOCKED_DOMAIN = 'checkout.shop.example'
const LOST_VAULT = 'kv-north-2'
const REGIONS = ['eu-central', 'eu-west', 'us-east'] as const

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

export const billing: EngineRole = {
  name: 'billing',
  operation: 'issue',
  queue: 'invoices',
  maxAttempts: 3,
  weight: 5,
  sickShare: 0.3,
  runMs: 180,
  heals: true,
  well: (occasion) => invoice(occasion, 'this month'),
  sick: (occasion) => invoice(occasion, 'last month'),
  judge(message, world) {
    const number = text(message.invoice)
    const period = text(message.period)
    const isOld = period < text(message.issuedAt).slice(0, period.length)
    return isOld && world.isLocked(number) ? periodLocked(number, period) : null
  },
}

/** Filled by storms. */
export const payments: EngineRole = {
  name: 'payments',
  operation: 'charge',
  queue: 'payments',
  maxAttempts: 2,
  weight: 5,
  sickShare: 0,
  runMs: 420,
  heals: true,
  well: payment,
  sick: payment,
  judge: (message, world) => (world.gatewayIsDown ? gatewayTimeout(text(message.payment).length) : null),
}

export const provisioning: EngineRole = {
  name: 'provisioning',
  operation: 'instance-registered',
  queue: 'webhook-queue',
  maxAttempts: 2,
  weight: 3,
  sickShare: 0.3,
  runMs: 60,
  heals: false,
  well: (occasion) => registration(occasion, occasion.chance.pick(REGIONS)),
  sick: (occasion) => registration(occasion, undefined),
  judge: ({ site }) => (site === undefined ? noSite() : null),
}

const hmac: EngineRole = {
  name: 'hmac',
  operation: 'rotate',
  queue: 'hmac-rotation-queue',
  maxAttempts: 3,
  weight: 2,
  sickShare: 0.25,
  runMs: 90,
  heals: false,
  well: (occasion) => keyRotation(occasion, 'kv-north-1'),
  sick: (occasion) => keyRotation(occasion, LOST_VAULT),
  judge: ({ vault }) => (vault === LOST_VAULT ? vaultRefused(LOST_VAULT) : null),
}

const tls: EngineRole = {
  name: 'tls',
  operation: 'renew',
  queue: 'tls-rotation-queue',
  maxAttempts: 2,
  weight: 2,
  sickShare: 0.2,
  runMs: 700,
  heals: false,
  well: (occasion) => certificate(occasion, `shop-${occasion.chance.whole(1, 90)}.example`),
  sick: (occasion) => certificate(occasion, BLOCKED_DOMAIN),
  judge: ({ domain }) => (domain === BLOCKED_DOMAIN ? rateLimited(BLOCKED_DOMAIN) : null),
}

const alerts: EngineRole = {
  name: 'alerts',
  operation: 'process',
  queue: 'monitor-alerts-queue',
  maxAttempts: 2,
  weight: 3,
  sickShare: 0.2,
  runMs: 25,
  heals: false,
  well: (occasion) => alert(occasion, `sev${occasion.chance.whole(1, 4)}`),
  sick: (occasion) => alert(occasion, 'sev5'),
  judge: ({ severity }) => (severity === 'sev5' ? schemaViolation('sev5') : null),
}

export const ENGINE_ROLES: readonly EngineRole[] = [billing, payments, provisioning, hmac, tls, alerts]

/** Starts a worker for each engine; the office stops them. */
export async function startEngines(office: Office, world: World, chance: Chance): Promise<void> {
  const engines = ENGINE_ROLES.map((role) => workerOf(role, office, world, chance))
  await Promise.all(engines.map((engine) => engine.start()))
}

function workerOf(role: EngineRole, office: Office, world: World, chance: Chance): Engine {
  const { name, operation, maxAttempts, runMs, judge } = role
  return office.engine({
    name,
    operation,
    maxAttempts,
    backoff: { base: '2s', factor: 2, max: '10s', jitter: 0.3 },
    concurrency: 16,
    timeout: '30s',
    instanceId: instanceOf,
    handler: async (message, { attempt, signal }) => {
      await pause(office.clock, BigInt(chance.whole(1, runMs)) * 1_000n, signal)
      const trouble = judge(message, world)
      if (name === billing.name)
        remember(world, String(message.invoice), trouble !== null, attempt === maxAttempts)
      if (trouble !== null) throw errorOf(trouble)
      return { ok: true, by: `${name}-worker`, attempt }
    },
  })
}

/** An invoice that dies finds its period open the next time. */
function remember(world: World, invoice: string, hasFailed: boolean, isLast: boolean): void {
  if (!hasFailed) world.posted(invoice)
  else if (isLast) world.died(invoice)
}
