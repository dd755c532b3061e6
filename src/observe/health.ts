/**
 * Health for load balancers and operators: `/health` as the queue contract has it, `/health/live` for "the
 * process answers" and `/health/ready` for "requests can be served now". None of them needs a token.
 */
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../core/clock.ts'
import { formatTimestamp } from '../core/timestamp.ts'
import type { HealthStatus } from '../outbox/health.ts'
import type { OutboxReading } from '../outbox/readings.ts'
import { VERSION } from './version.ts'

export interface HealthOptions {
  /** Throws when the store fails. */
  readonly ping: () => Promise<void>
  readonly stopping: () => boolean
  /** The system's clock: the time of a check is real even when tests hold the office's clock. */
  readonly clock: Clock
  /** The outboxes that are configured, after so many milliseconds at the latest. */
  readonly outboxes?: (options: { readonly patienceMs: number }) => Promise<readonly OutboxReading[]>
}

/** Who probes waits a second as a rule; an outbox that is slow must not make the server look dead. */
const OUTBOX_PATIENCE_MS = 500

/** A store that does not answer within this time counts as failing. */
const PING_TIMEOUT_MS = 5_000

/** Bodies are sent as bytes: to the content type of text Fastify would add a charset. */
const CONTENT_TYPE = 'application/health+json'

/** Adds the health routes to a server. */
export async function healthRoutes(app: FastifyInstance, options: HealthOptions): Promise<void> {
  const passing = async () => !options.stopping() && (await answers(options.ping))
  const open = (summary: string) => ({
    config: { role: 'open' as const },
    schema: { summary, tags: ['health'] },
  })

  app.get('/health', open('Can requests be served, and how is the store'), async (_request, reply) => {
    const outboxes = options.outboxes?.({ patienceMs: OUTBOX_PATIENCE_MS }) ?? []
    const [pass, readings] = await Promise.all([passing(), outboxes])
    const body = healthBody(pass, formatTimestamp(options.clock.now()), readings)
    return reply
      .code(pass ? 200 : 503)
      .header('content-type', CONTENT_TYPE)
      .send(Buffer.from(JSON.stringify(body)))
  })
  app.get('/health/live', open('Is the process alive'), async (_request, reply) =>
    reply.header('content-type', CONTENT_TYPE).send(Buffer.from('{"status":"pass"}')),
  )
  app.get('/health/ready', open('Can requests be served now'), async (_request, reply) => {
    const pass = await passing()
    const status = pass ? 'pass' : 'fail'
    return reply
      .code(pass ? 200 : 503)
      .header('content-type', CONTENT_TYPE)
      .send(Buffer.from(JSON.stringify({ status })))
  })
}

const CHECK_STATUS = { ok: 'pass', degraded: 'warn', unhealthy: 'fail' } as const satisfies Record<
  HealthStatus,
  string
>

/**
 * The body of `/health`. The state of the store decides whether requests can be served; an outbox that is not well is worth a
 * warning, but taking its server out of service would help nobody.
 */
export function healthBody(pass: boolean, time: string, outboxes: readonly OutboxReading[] = []) {
  const status = pass ? 'pass' : 'fail'
  const check = { componentType: 'datastore', status, time }
  const unwell = outboxes.some(({ health }) => health.status !== 'ok')
  return {
    status: pass && unwell ? 'warn' : status,
    version: VERSION,
    checks: {
      'queues:storage': [pass ? check : { ...check, output: 'storage check failed' }],
      ...Object.fromEntries(
        outboxes.map((reading) => [`outbox:${reading.outbox}`, [outboxCheck(reading, time)]]),
      ),
    },
  }
}

function outboxCheck({ looked, health: { status, reasons } }: OutboxReading, time: string) {
  const check = { componentType: 'component', status: CHECK_STATUS[status], time }
  if (status === 'ok') return check
  // Everybody may read this: what a database said about its failure is for those with a token.
  return { ...check, output: looked.ok ? reasons.join('; ') : looked.trouble.what }
}

async function answers(ping: () => Promise<void>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>()
  const timer = setTimeout(resolve, PING_TIMEOUT_MS, false)
  const answered = ping().then(
    () => true,
    () => false,
  )
  try {
    return await Promise.race([answered, late])
  } finally {
    clearTimeout(timer)
  }
}
