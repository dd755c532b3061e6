/**
 * Health for load balancers and operators: `/health` as the queue contract has it, `/health/live` for "the
 * process answers" and `/health/ready` for "requests can be served now". None of them needs a token.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Clock } from '../core/clock.ts'
import { formatTimestamp } from '../core/timestamp.ts'
import { VERSION } from '../core/version.ts'
import type { SourceName } from '../letters/letter.ts'
import type { AskSources, SourceHealth } from '../letters/routes/activity.ts'
import type { IntakeStanding } from '../sources/kafka/ports.ts'
import { publicTroubles } from '../sources/kafka/standing.ts'
import { type HealthStatus, worstOf } from '../sources/outbox/health.ts'
import type { OutboxReading } from '../sources/outbox/readings.ts'

export interface HealthOptions {
  /** Throws when the store fails. */
  readonly ping: () => Promise<void>
  readonly stopping: () => boolean
  /** The system's clock: the time of a check is real even when tests hold the office's clock. */
  readonly clock: Clock
  /** The outboxes that are configured, after so many milliseconds at the latest. */
  readonly outboxes?: (options: { readonly patienceMs: number }) => Promise<readonly OutboxReading[]>
  /** How many consumers of webhooks are paused, because all deliveries to them failed. */
  readonly pausedConsumers?: () => Promise<number>
  /** Indexes that the store lacks. */
  readonly missingIndexes?: () => Promise<readonly string[]>
  /** How intake of dead events stands; left out where there is none. */
  readonly kafka?: () => IntakeStanding
}

/** Who probes waits a second as a rule; an outbox, or a store that is slow to tell about webhooks, must not make the server look dead. */
const PATIENCE_MS = 500

/** A store that does not answer within this time counts as failing. */
const PING_TIMEOUT_MS = 5_000

/** Adds the health routes to a server. */
export async function healthRoutes(app: FastifyInstance, options: HealthOptions): Promise<void> {
  const answers = async () => {
    await options.ping()
    return true
  }
  const passing = async () => !options.stopping() && (await within(PING_TIMEOUT_MS, answers(), false))
  const missingIndexes = () => within(PATIENCE_MS, options.missingIndexes?.() ?? Promise.resolve([]), [])
  const open = (summary: string) => ({
    config: { role: 'open' as const },
    schema: { summary, tags: ['health'] },
  })

  app.get('/health', open('Can requests be served, and how is the store'), async (_request, reply) => {
    const outboxes = options.outboxes?.({ patienceMs: PATIENCE_MS }) ?? []
    const paused = within(PATIENCE_MS, options.pausedConsumers?.() ?? Promise.resolve(0), 0)
    const [pass, readings, pausedConsumers, missing] = await Promise.all([
      passing(),
      outboxes,
      paused,
      missingIndexes(),
    ])
    const time = formatTimestamp(options.clock.now())
    const body = healthBody(pass, time, readings, pausedConsumers, options.kafka?.() ?? null, missing)
    return send(reply, pass, body)
  })
  app.get('/health/live', open('Is the process alive'), async (_request, reply) =>
    send(reply, true, { status: 'pass' }),
  )
  app.get('/health/ready', open('Can requests be served now'), async (_request, reply) => {
    const [pass, missing] = await Promise.all([passing(), missingIndexes()])
    return send(reply, pass, readyBody(pass, options.kafka?.() ?? null, missing))
  })
}

/** As bytes: to the content type of text Fastify would add a charset. */
const send = (reply: FastifyReply, pass: boolean, body: object): FastifyReply =>
  reply
    .code(pass ? 200 : 503)
    .header('content-type', 'application/health+json')
    .send(Buffer.from(JSON.stringify(body)))

const CHECK_STATUS = { ok: 'pass', degraded: 'warn', unhealthy: 'fail' } as const satisfies Record<
  HealthStatus,
  string
>

/**
 * The body of `/health`. The state of the store decides whether requests can be served; an outbox that is not well, a consumer that
 * takes no deliveries, or dead events that are not taken in, is worth a warning, but taking the server out of service would help nobody.
 */
export function healthBody(
  pass: boolean,
  time: string,
  outboxes: readonly OutboxReading[] = [],
  pausedConsumers = 0,
  kafka: IntakeStanding | null = null,
  missing: readonly string[] = [],
) {
  const status = pass ? 'pass' : 'fail'
  const troubles = kafka === null ? [] : publicTroubles(kafka)
  const unwell =
    pausedConsumers > 0 ||
    missing.length > 0 ||
    troubles.length > 0 ||
    outboxes.some(({ health }) => health.status !== 'ok')
  return {
    status: pass && unwell ? 'warn' : status,
    version: VERSION,
    checks: {
      'queues:storage': [check('datastore', status, time, pass ? null : 'storage check failed')],
      ...Object.fromEntries(
        outboxes.map((reading) => [`outbox:${reading.outbox}`, [outboxCheck(reading, time)]]),
      ),
      // Without their names, which are nobody's business who has no token.
      ...(pausedConsumers > 0 && {
        'webhooks:deliveries': [check('component', 'warn', time, pausedText(pausedConsumers))],
      }),
      ...(missing.length > 0 && { 'store:schema': [check('datastore', 'warn', time, missingText(missing))] }),
      ...(kafka !== null && {
        'kafka:intake': [check('component', unwellIf(troubles), time, troubles.join('; ') || null)],
      }),
    },
  }
}

const check = (componentType: string, status: string, time: string, output: string | null) => ({
  componentType,
  status,
  time,
  ...(output === null ? {} : { output }),
})

const unwellIf = (troubles: readonly string[]): string => (troubles.length === 0 ? 'pass' : 'warn')

const missingText = (missing: readonly string[]): string =>
  `missing: ${missing.join(', ')}; \`bartleby migrate --repair\` makes what is missing`

function outboxCheck({ looked, health: { status, reasons } }: OutboxReading, time: string) {
  // Everybody may read this: what a database said about its failure is for those with a token.
  const output = looked.ok ? reasons.join('; ') : looked.trouble.what
  return check('component', CHECK_STATUS[status], time, status === 'ok' ? null : output)
}

/** The body of `/health/ready`. What does not work while requests can be served is named, and does not fail the server. */
export function readyBody(
  pass: boolean,
  kafka: IntakeStanding | null = null,
  missing: readonly string[] = [],
) {
  const degraded = [
    ...(kafka !== null && publicTroubles(kafka).length > 0 ? ['kafka'] : []),
    ...(missing.length > 0 ? ['schema'] : []),
  ]
  return {
    status: pass ? ('pass' as const) : ('fail' as const),
    ...(degraded.length > 0 ? { degraded } : {}),
  }
}

/** Why deliveries of webhooks are worth a look. */
const pausedText = (paused: number): string =>
  `deliveries to ${paused === 1 ? '1 consumer' : `${paused} consumers`} are paused, because all of them failed`

/** What it gives, or `otherwise` when it fails or takes longer. */
async function within<T, Otherwise>(
  ms: number,
  asked: Promise<T>,
  otherwise: Otherwise,
): Promise<T | Otherwise> {
  const { promise: late, resolve } = Promise.withResolvers<Otherwise>()
  const timer = setTimeout(resolve, ms, otherwise)
  try {
    return await Promise.race([asked.catch(() => otherwise), late])
  } finally {
    clearTimeout(timer)
  }
}

/** Who is asked; of Kafka null where there is no intake. */
export interface HealthWitnesses extends Required<Pick<HealthOptions, 'outboxes' | 'pausedConsumers'>> {
  readonly kafka: (() => IntakeStanding) | null
}

/** The overview answers within half a second. */
const OVERVIEW_PATIENCE_MS = 400

/**
 * How the sources of letters are, for those who may see the office: which is well, which needs a look and why, and which is not in
 * use. Queues, engines and HTTP are the office itself: they are well when it can be asked at all.
 */
export const sourceHealth =
  ({ outboxes, pausedConsumers, kafka }: HealthWitnesses): AskSources =>
  async () => {
    const [readings, paused] = await Promise.all([
      outboxes({ patienceMs: OVERVIEW_PATIENCE_MS }),
      within(OVERVIEW_PATIENCE_MS, pausedConsumers(), null),
    ])
    return [
      ok('queues'),
      ok('engines'),
      outboxHealth(readings),
      webhookHealth(paused),
      kafkaHealth(kafka?.() ?? null),
      ok('http'),
    ]
  }

const ok = (source: SourceName): SourceHealth => ({ source, health: 'ok', note: null })

const HEALTH = { ...CHECK_STATUS, ok: 'ok' } as const satisfies Record<HealthStatus, SourceHealth['health']>

function outboxHealth(readings: readonly OutboxReading[]): SourceHealth {
  if (readings.length === 0) return { source: 'outbox', health: 'off', note: 'no outbox is configured' }
  const unwell = readings.filter(({ health }) => health.status !== 'ok')
  const notes = unwell.map(({ outbox, health }) => `${outbox}: ${health.reasons.join(', ')}`)
  return {
    source: 'outbox',
    health: HEALTH[worstOf(readings.map(({ health }) => health.status))],
    note: notes.length === 0 ? null : notes.join('; '),
  }
}

/** `paused` is null when that could not be found out. */
function webhookHealth(paused: number | null): SourceHealth {
  if (paused === 0) return ok('webhooks')
  const note =
    paused === null ? 'whether deliveries are paused could not be found out in time' : pausedText(paused)
  return { source: 'webhooks', health: 'warn', note }
}

function kafkaHealth(standing: IntakeStanding | null): SourceHealth {
  if (standing === null) return { source: 'kafka', health: 'off', note: 'Kafka is not enabled' }
  const { state } = standing
  const troubles = standing.troubles.length > 0 ? standing.troubles : publicTroubles(standing)
  if (state === 'stopped')
    return { source: 'kafka', health: 'fail', note: troubles.join('; ') || 'intake has stopped' }
  if (troubles.length === 0) return ok('kafka')
  return { source: 'kafka', health: 'warn', note: troubles.join('; ') }
}
