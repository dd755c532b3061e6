/** Health without a token: `/health`, `/health/live` (the process answers) and `/health/ready` (requests can be served). */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { type HealthCheck, type ServedSource, type SourceHealth, WELL } from '../api/source-http.ts'
import type { Clock } from '../core/clock.ts'
import type { RoundState } from '../core/rounds.ts'
import { formatTimestamp } from '../core/timestamp.ts'
import { VERSION } from '../core/version.ts'
import { within } from '../core/waiting.ts'

type AskedSource = Pick<ServedSource, 'health' | 'isDegraded'> & { readonly name: string }

interface HealthOptions {
  readonly ping: () => Promise<void>
  readonly stopping: () => boolean
  /** The system's clock: a check has real time, whatever tests set. */
  readonly clock: Clock
  readonly sources: readonly AskedSource[]
  readonly missingIndexes: () => Promise<readonly string[]>
  readonly rounds: () => readonly RoundState[]
}

/** A prober waits a second as a rule; a slow source must not make the server look dead. */
const PATIENCE_MS = 500

/** A store silent for so long counts as failing. */
const PING_TIMEOUT_MS = 5_000

export async function healthRoutes(app: FastifyInstance, options: HealthOptions): Promise<void> {
  const { ping, stopping, clock, sources } = options
  const answers = async () => {
    await ping()
    return true
  }
  const passing = async () => !stopping() && (await within(PING_TIMEOUT_MS, answers(), false))
  const missingIndexes = () => within(PATIENCE_MS, options.missingIndexes(), [])
  const open = (summary: string) => ({
    config: { role: 'open' as const },
    schema: { summary, tags: ['health'] },
  })

  app.get('/health', open('Can requests be served, and how is the store'), async (_request, reply) => {
    const asked = askSources(sources, PATIENCE_MS)
    const [pass, healths, missing] = await Promise.all([passing(), asked, missingIndexes()])
    const rounds = pass ? [{ checks: failedRounds(options.rounds()) }] : []
    const told = [...healths.values(), ...rounds]
    return send(reply, pass, healthBody(pass, formatTimestamp(clock.now()), told, missing))
  })
  app.get('/health/live', open('Is the process alive'), async (_request, reply) =>
    send(reply, true, { status: 'pass' }),
  )
  app.get('/health/ready', open('Can requests be served now'), async (_request, reply) => {
    const [pass, missing] = await Promise.all([passing(), missingIndexes()])
    const degraded = sources.filter((source) => source.isDegraded?.()).map(({ name }) => name)
    return send(reply, pass, readyBody(pass, degraded, missing))
  })
}

/** As bytes: Fastify adds a charset to text. */
const send = (reply: FastifyReply, pass: boolean, body: object): FastifyReply =>
  reply
    .code(pass ? 200 : 503)
    .header('content-type', 'application/health+json')
    .send(Buffer.from(JSON.stringify(body)))

/** The store decides whether requests can be served; a source that is unwell is only a warning. */
export function healthBody(
  pass: boolean,
  time: string,
  sources: readonly Pick<SourceHealth, 'checks'>[] = [],
  missing: readonly string[] = [],
) {
  const status = pass ? 'pass' : 'fail'
  const checks = sources.flatMap((source) => Object.entries(source.checks ?? {}))
  const isWell = missing.length === 0 && checks.every(([, check]) => check.status === 'pass')
  return {
    status: pass && !isWell ? 'warn' : status,
    version: VERSION,
    checks: {
      'queues:storage': [shown('datastore', { status, output: pass ? null : 'storage check failed' }, time)],
      ...Object.fromEntries(checks.map(([name, check]) => [name, [shown('component', check, time)]])),
      ...(missing.length > 0 && {
        'store:schema': [shown('datastore', { status: 'warn', output: missingText(missing) }, time)],
      }),
    },
  }
}

/** Warnings of failing rounds. Errors are for the log, since anybody may read this. Left out while the store fails, which most rounds need. */
const failedRounds = (rounds: readonly RoundState[]): SourceHealth['checks'] & object =>
  Object.fromEntries(
    rounds
      .filter(({ isFailing }) => isFailing)
      .map(({ name, lastError }) => [
        `round:${name}`,
        { status: 'warn', output: `the last round failed: ${lastError?.errorClass}` },
      ]),
  )

const shown = (componentType: string, { status, output }: HealthCheck, time: string) => ({
  componentType,
  status,
  time,
  ...(output === null ? {} : { output }),
})

const missingText = (missing: readonly string[]): string =>
  `missing: ${missing.join(', ')}; \`bartleby migrate --repair\` makes what is missing`

/** Degraded parts are named and do not fail the server. */
function readyBody(pass: boolean, sources: readonly string[], missing: readonly string[]) {
  const degraded = [...sources, ...(missing.length > 0 ? ['schema'] : [])]
  return {
    status: pass ? ('pass' as const) : ('fail' as const),
    ...(degraded.length > 0 ? { degraded } : {}),
  }
}

const UNKNOWN: SourceHealth = { state: 'fail', note: 'how it is could not be found out' }

/** By name of the source, within `patienceMs`. */
export async function askSources(
  sources: readonly AskedSource[],
  patienceMs: number,
): Promise<ReadonlyMap<string, SourceHealth>> {
  const asked = sources.map(async (source) => {
    const health = (await source.health?.(patienceMs).catch(() => UNKNOWN)) ?? WELL
    return [source.name, health] as const
  })
  return new Map(await Promise.all(asked))
}
