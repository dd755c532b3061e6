/** An HTTP server whose queues are played by a script, for tests of the facade alone. */

import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import pino from 'pino'
import type { ServedSource } from '../../src/api/source-http.ts'
import type { Config } from '../../src/config/index.ts'
import type { Clock } from '../../src/core/clock.ts'
import { failure } from '../../src/core/errors.ts'
import type { RoundState } from '../../src/core/rounds.ts'
import { SystemClock } from '../../src/core/system-clock.ts'
import { Xids } from '../../src/core/xid.ts'
import { createHttpServer, type HttpServer } from '../../src/http/server.ts'
import type { Letters } from '../../src/letters/letters.ts'
import type { Summary } from '../../src/letters/numbers/summary.ts'
import type { OfficeRuns } from '../../src/letters/work.ts'
import type { Office } from '../../src/office.ts'
import type { Queues } from '../../src/queues/queues.ts'
import type { RedriveStanding } from '../../src/redrive/redrive.ts'
import type { Redrives } from '../../src/redrive/redrives.ts'
import { engineApi } from '../../src/sources/engines/routes.ts'
import { SOURCES } from '../../src/sources/index.ts'
import type { ServedKafka } from '../../src/sources/kafka/routes/call.ts'
import { servedKafka } from '../../src/sources/kafka/served.ts'
import { servedOutboxes } from '../../src/sources/outbox/served/readings.ts'
import { queueApi } from '../../src/sources/queues/api.ts'
import type { CalledWebhooks } from '../../src/sources/webhooks/routes/call.ts'
import { servedWebhooks } from '../../src/sources/webhooks/served.ts'
import { DEFAULT_WEBHOOK_SETTINGS } from '../../src/sources/webhooks/settings.ts'
import type { Webhooks } from '../../src/sources/webhooks/webhooks.ts'

export interface Script {
  /** The calls that a test expects; every other one fails as unexpected. */
  readonly queues?: Partial<Queues>
  readonly ping?: () => Promise<void>
  /** Left out: the store has all. */
  readonly missingIndexes?: readonly string[]
  /** Left out: there are none. */
  readonly rounds?: readonly RoundState[]
  readonly maxProduceBytes?: number
  readonly tokens?: Config['auth']['tokens']
  /** The parts of webhooks, and of those the calls, that a test needs. */
  readonly webhooks?: {
    readonly [Part in keyof CalledWebhooks]?: Partial<Pick<CalledWebhooks[Part], keyof CalledWebhooks[Part]>>
  }
  /** The Kafka part; left out, there is none. */
  readonly kafka?: ServedKafka
  readonly http?: Partial<Config['http']>
  readonly clock?: Clock
  /** Where the console was built to; left out, it was not. */
  readonly consoleFolder?: string
  /** What reads the counts that are sent as they change. */
  readonly standing?: () => Promise<Summary>
  /** The calls on letters that a test expects. */
  readonly letters?: Partial<Letters>
  /** The calls on redrives that a test expects. */
  readonly redriveCalls?: Partial<Redrives>
  /** The calls on runs that a test expects. */
  readonly runs?: Partial<Pick<OfficeRuns, keyof OfficeRuns>>
  /** What reads the redrives that are under way; left out, there are none. */
  readonly redrives?: () => Promise<readonly RedriveStanding[]>
  /** Default: info. */
  readonly logLevel?: 'info' | 'debug'
}

export interface ScriptedServer extends HttpServer {
  /** The lines of the log. */
  readonly logged: readonly string[]
}

const open: HttpServer[] = []

const SECRET = Buffer.alloc(32, 'secret of a store')
const NOT_BUILT = '/nonexistent'

/** A server that is not listening yet; `inject` needs no socket. */
export async function scriptedServer(script: Script = {}): Promise<ScriptedServer> {
  const clock = script.clock ?? new SystemClock()
  const { maxProduceBytes = 5_000_000 } = script
  const queues = { depths: async () => [], ...script.queues }
  const numbers = { gauges: async () => [], officeGauges: async () => null, summary: script.standing }
  const webhooks = {
    settings: DEFAULT_WEBHOOK_SETTINGS,
    xids: new Xids(clock),
    metrics: { text: async () => '' },
    pausedConsumers: async () => 0,
    ...script.webhooks,
  }
  // A script plays only the parts that its test needs.
  const served: Readonly<Record<string, ServedSource>> = {
    queues: { http: { serve: (server) => queueApi({ queues, numbers, maxProduceBytes } as never, server) } },
    engines: { http: { serve: (server) => engineApi({ numbers } as never, server) } },
    outbox: servedOutboxes(() => [], clock),
    webhooks: servedWebhooks(webhooks as unknown as Webhooks),
    kafka: servedKafka(script.kafka ?? null),
  }
  const sources = SOURCES.map(({ name, title }) => ({ name, title, ...served[name] }))
  const office = {
    queues,
    letters: { retentionDays: 90, ...script.letters, numbers },
    redrives: {
      active: script.redrives ?? (async () => []),
      listen: () => {},
      ...script.redriveCalls,
    },
    runs: { ...script.runs },
    history: {},
    sources,
    clock,
    ping: script.ping ?? (async () => {}),
    missingIndexes: async () => script.missingIndexes ?? [],
    rounds: () => script.rounds ?? [],
    secret: async () => SECRET,
    onStoreCall: () => {},
    onRemoved: () => {},
  }
  const config = {
    host: '127.0.0.1',
    store: 'sqlite::memory:',
    auth: { tokens: script.tokens ?? [] },
    console: { environment: 'test', colour: 'gray' },
    metrics: { open: false },
    http: {
      bodyTimeoutSeconds: 30,
      connectionsWithoutToken: 200,
      wrongTokensPerMinute: 100,
      trustedProxies: [],
      readTimeoutSeconds: 240,
      writeTimeoutSeconds: 240,
      maxBodyBytes: 16_777_216,
      ...script.http,
    },
    testApi: false,
  }
  const logged: string[] = []
  const log = pino({ level: script.logLevel ?? 'info' }, { write: (line: string) => logged.push(line) })
  // A script plays only the parts of an office, and names only the settings, that its test needs.
  const server = await createHttpServer(office as unknown as Office, config as unknown as Config, log, {
    consoleFolder: script.consoleFolder ?? NOT_BUILT,
  })
  open.push(server)
  return { ...server, logged }
}

/** Ends all servers of a test. */
export async function closeServers(): Promise<void> {
  for (const { app } of open.splice(0)) {
    app.server.closeAllConnections()
    await app.close()
  }
}

/** Stands for a call on a queue that does not exist. */
export const unknownQueue = async (): Promise<never> => {
  throw failure('queue_unknown', { name: 'q' })
}

/** A connection to a server that listens from now on. */
export async function dial({ app }: HttpServer): Promise<Socket> {
  await app.listen({ host: '127.0.0.1', port: 0 })
  // It listens on a port, so its address has one.
  const { port } = app.server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** All that comes over a connection until it is closed. */
export async function received(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  // Not `once` of events: a reset after the answer would reject it.
  await new Promise((resolve) => socket.once('close', resolve))
  return text
}
