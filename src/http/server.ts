/** The HTTP server over an office: one port, several APIs, and one place for access, metrics, failures and lifetimes of connections. */
import type { Socket } from 'node:net'
import swagger from '@fastify/swagger'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import { knownTokens, visitorOf, WrongTokens } from '../api/auth.ts'
import { discardRest, limitBodyTime } from '../api/body.ts'
import { serveApi } from '../api/calls.ts'
import type { ServerScope } from '../api/source-http.ts'
import type { Config } from '../config/index.ts'
import { BartlebyError, failure } from '../core/errors.ts'
import { SystemClock } from '../core/system-clock.ts'
import type { DemoSignatures } from '../demo/story/story.ts'
import { historyCalls } from '../history/routes.ts'
import { letterCalls } from '../letters/routes.ts'
import { askSources, healthRoutes } from '../observe/health.ts'
import { Metrics } from '../observe/metrics.ts'
import { settingsCall } from '../observe/settings-routes.ts'
import type { Office } from '../office.ts'
import { redriveRoutes } from '../redrive/routes/calls.ts'
import { verifyCalls } from '../verify/routes.ts'
import { runCalls } from '../work/routes.ts'
import { clientAddresses } from './client-address.ts'
import { assetRoutes, CONSOLE_FOLDER, sendConsolePage } from './console-files.ts'
import { documentRoutes, openapiOptions } from './documents.ts'
import { LiveCounts } from './events/live-counts.ts'
import { eventRoutes } from './events/routes.ts'
import { Facades } from './facades.ts'
import { gate } from './gate.ts'
import { hostCheck } from './hosts.ts'
import { sessionRoutes } from './session/routes.ts'
import { Sessions } from './session/sessions.ts'
import { boundStrangers } from './strangers.ts'

/** Headers may begin just before a kept connection would have been closed. */
const HEADERS_GRACE_MS = 5_000
/** The overview answers within half a second. */
const OVERVIEW_TIMEOUT_MS = 400
const MAX_PARAMETER_CHARACTERS = 4_096
/** Silence after which the network looks for a vanished machine. */
const PROBE_AFTER_MS = 30_000

export interface HttpServer {
  readonly app: FastifyInstance
  /** Refuses calls from now on with "service is shutting down". */
  refuseCalls(): void
  idle(): Promise<void>
}

interface HttpServerOptions {
  /** With it the console offers a tour of the demo. */
  readonly demo?: DemoSignatures
  readonly consoleFolder?: string
}

export async function createHttpServer(
  office: Office,
  config: Config,
  log: FastifyBaseLogger,
  { demo, consoleFolder = CONSOLE_FOLDER }: HttpServerOptions = {},
): Promise<HttpServer> {
  let refusing = false
  const stopping = () => refusing
  const { clock, sources } = office
  const { tokens } = config.auth
  const { bodyTimeoutSeconds, connectionsWithoutToken, trustedProxies, wrongTokensPerMinute } = config.http
  const addresses = clientAddresses(trustedProxies)
  const wrongTokens = new WrongTokens(clock, wrongTokensPerMinute)
  // Clients keep idle connections for a while; a server that closes earlier resets them at random.
  const keepAliveTimeout = config.http.readTimeoutSeconds * 1_000
  const own = sources
    .flatMap(({ http }) => http?.ownTokens ?? [])
    .filter((guarded) => guarded.tokens.length > 0)
  const known = knownTokens(tokens, own)
  const sessions =
    known.length === 0
      ? null
      : new Sessions({ tokens: known, secret: await office.secret('sessions'), clock })
  const scope: ServerScope = {
    clock,
    stopping,
    ...config.http,
    tokens: known,
    wrongTokens,
    log,
    time: config.testApi ? office : undefined,
  }
  const apis = await Promise.all(sources.flatMap(({ http }) => http?.serve(scope) ?? []))
  const facades = new Facades(
    apis.flatMap(({ facade }) => facade ?? []),
    clock,
  )
  const app: FastifyInstance = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    // One logger for all requests: a child per request costs more than most of them would ever log.
    childLoggerFactory: (logger) => logger,
    exposeHeadRoutes: false,
    // A row key is an id of the caller's and a time, percent-encoded.
    routerOptions: { maxParamLength: MAX_PARAMETER_CHARACTERS },
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    genReqId: (request) => facades.of(request.url ?? '').requestId?.(request) ?? '',
    keepAliveTimeout,
    connectionTimeout: 0,
    requestTimeout: 0,
    maxRequestsPerSocket: 0,
    http: {
      headersTimeout: keepAliveTimeout + HEADERS_GRACE_MS,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_AFTER_MS,
    },
    clientErrorHandler: (error, socket) => refuseMalformed(facades, error, socket),
    frameworkErrors: (error, request, reply) => {
      // Clients can cause only one: a path that is not decodable.
      request.log.debug({ err: error }, 'request refused by the framework')
      facades.answerUnknown(request, reply)
    },
  })

  const metrics = new Metrics({
    depths: () => office.queues.depths(),
    letters: () => office.letters.numbers.gauges(),
    officeGauges: () => office.letters.numbers.officeGauges(),
    redrives: () => office.redrives.active(),
    rounds: () => office.rounds(),
    sources,
    clock,
  })
  office.onStoreCall((call) => metrics.observeStoreCall(call))
  office.onRemoved((removed) => metrics.observeRemoved(removed))
  office.redrives.listen(metrics.redrives)
  const requests = countRequests(app)
  const liveCounts = new LiveCounts({
    read: () => office.letters.numbers.summary(),
    redrives: () => office.redrives.active(),
    clock,
    log,
  })

  app.addHook(
    'onRequest',
    hostCheck({
      listen: config.host,
      allowed: config.http.allowedHosts,
      hasTokens: tokens.length > 0,
      facades,
    }),
  )
  app.decorateRequest('clientAddress', '')
  app.addHook('onRequest', (request, _reply, done) => {
    request.clientAddress = addresses.of(request.raw)
    limitBodyTime(request.raw, bodyTimeoutSeconds)
    done()
  })
  app.decorateRequest('answerBytes', 0)
  if (facades.all.some(({ onRequest }) => onRequest !== undefined))
    app.addHook('onRequest', (request, reply, done) => {
      const facade = facades.of(request.url)
      if (facade.onRequest === undefined || facades.isPage(request)) done()
      else facade.onRequest(request, reply, done)
    })
  app.addHook('onRequest', gate(tokens, clock, { facades, sessions, own, wrongTokens }))
  if (tokens.length > 0) boundStrangers(app, facades, { most: connectionsWithoutToken, addresses })
  app.addHook('onResponse', (request, reply, done) => {
    const { url, config } = request.routeOptions
    // A colon of a path is doubled in its route.
    const path = url?.replace('::', ':')
    if (config.isStream !== true) metrics.observeRequest(path, reply.statusCode, reply.elapsedTime / 1_000)
    discardRest(request.raw)
    done()
  })
  if (facades.all.some(({ onResponse }) => onResponse !== undefined))
    app.addHook('onResponse', (request, reply, done) => {
      facades.of(request.url).onResponse?.(request, reply)
      done()
    })
  app.setErrorHandler((error, request, reply) => {
    if (!(error instanceof BartlebyError))
      request.log.error({ err: error, path: request.url }, 'request failed')
    facades.sendError(request, reply, error instanceof BartlebyError ? error : failure('internal'))
  })
  app.setNotFoundHandler((request, reply) => {
    if (facades.isPage(request)) return sendConsolePage(reply, consoleFolder)
    facades.answerUnknown(request, reply)
  })

  await app.register(swagger, openapiOptions(facades))
  const environment = { name: config.console.environment, colour: config.console.colour }
  const settings = { store: config.store, retentionDays: office.letters.retentionDays, environment, tokens }
  await app.register(async (api) =>
    serveApi(api, scope, [
      ...letterCalls(office.letters, clock, () => askSources(sources, OVERVIEW_TIMEOUT_MS)),
      ...runCalls(office.runs, (verb, key, act) => office.letters.once(verb, key, act)),
      ...historyCalls(office.history),
      settingsCall({ startedAt: clock.now(), ...settings }),
      ...verifyCalls(office.verifyRun),
    ]),
  )
  await app.register(redriveRoutes, { redrives: office.redrives, ...scope })
  for (const api of apis) await api.routes(app)
  await app.register(healthRoutes, {
    ping: () => office.ping(),
    sources,
    missingIndexes: () => office.missingIndexes(),
    rounds: () => office.rounds(),
    stopping,
    clock: new SystemClock(),
  })
  app.get(
    '/metrics',
    { config: { role: config.metrics.open ? 'open' : 'viewer' }, schema: { hide: true } },
    async (request, reply) =>
      reply
        .header('content-type', Metrics.contentType)
        .header('x-request-id', request.id)
        .send(await metrics.text()),
  )
  await app.register(sessionRoutes, {
    ...scope,
    visitor: visitorOf(tokens, own),
    sessions,
    face: {
      environment,
      sources,
      demo: demo ?? null,
    },
  })
  await app.register(eventRoutes, { liveCounts, ...scope })
  await app.register(assetRoutes, { folder: consoleFolder, facades })
  await app.register(documentRoutes)
  await app.ready()

  return {
    app,
    refuseCalls: () => {
      refusing = true
      liveCounts.stop()
    },
    idle: requests.idle,
  }
}

/** Counts requests in flight, from arrival to the end of their answer or connection. */
function countRequests(app: FastifyInstance) {
  let inFlight = 0
  const waiting: (() => void)[] = []
  app.addHook('onRequest', (_request, reply, done) => {
    inFlight += 1
    reply.raw.once('close', () => {
      inFlight -= 1
      if (inFlight === 0) for (const wake of waiting.splice(0)) wake()
    })
    done()
  })
  return {
    idle: (): Promise<void> =>
      inFlight === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve)),
  }
}

/** Answers what is no HTTP at all. */
function refuseMalformed(facades: Facades, error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy()
    return
  }
  const reason = error.code ?? error.message
  const body = facades.all.find(({ malformedBody }) => malformedBody)?.malformedBody?.(reason) ?? '{}'
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n${body}`,
  )
}
