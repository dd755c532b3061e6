/**
 * The HTTP server over an office: one port, the APIs side by side, and one place for what concerns all of
 * them: who may pass, what is counted, how failures look, how long connections live.
 */

import type { Socket } from 'node:net'
import swagger from '@fastify/swagger'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import { knownTokens, requireKafka, visitorOf, WrongTokens } from '../api/auth.ts'
import { discardRest, limitBodyTime } from '../api/body.ts'
import type { Config } from '../config/index.ts'
import { BartlebyError, failure } from '../core/errors.ts'
import { SystemClock } from '../core/system-clock.ts'
import { historyRoutes } from '../history/routes.ts'
import { expiresKafka } from '../letters/expire.ts'
import { letterRoutes } from '../letters/routes.ts'
import type { OfficeWork } from '../letters/work.ts'
import { healthRoutes, sourceHealth } from '../observe/health.ts'
import { Metrics } from '../observe/metrics.ts'
import { operatorRoutes } from '../observe/operator-routes.ts'
import type { Office } from '../office.ts'
import { queueRoutes } from '../queues/routes.ts'
import { REDRIVE_RUN } from '../redrive/redrive.ts'
import { checkReach, redriveRoutes } from '../redrive/routes/calls.ts'
import { kafkaAdminRoutes } from '../sources/kafka/admin-routes.ts'
import { REASSIGNMENT } from '../sources/kafka/event.ts'
import { kafkaRequestId } from '../sources/kafka/routes/request.ts'
import { OutboxReadings } from '../sources/outbox/readings.ts'
import { outboxRoutes } from '../sources/outbox/routes.ts'
import { webhookAdminRoutes } from '../sources/webhooks/admin-routes.ts'
import { logAccess, requestIds } from '../sources/webhooks/routes/request.ts'
import { signatureCheck } from '../sources/webhooks/routes/signature-check.ts'
import { webhookRoutes } from '../sources/webhooks/routes.ts'
import { runRoutes } from '../work/routes.ts'
import { clientAddresses } from './client-address.ts'
import { assetRoutes, CONSOLE_FOLDER, sendConsolePage } from './console-files.ts'
import { documentRoutes, openapiOptions } from './documents.ts'
import { LiveCounts } from './events/live-counts.ts'
import { eventRoutes } from './events/routes.ts'
import { facadeOf, malformedRequestBody, pathOf, sendError } from './facades.ts'
import { answerUnknown, gate, isPage } from './gate.ts'
import { hostCheck } from './hosts.ts'
import { type DemoSignatures, sessionRoutes } from './session/routes.ts'
import { Sessions } from './session/sessions.ts'
import { boundStrangers } from './strangers.ts'

/** Headers may begin just before a kept connection would have been closed: they get this much longer. */
const HEADERS_GRACE_MS = 5_000
const MAX_PARAMETER_CHARACTERS = 4_096
/** A machine that vanished is noticed by the network after this long without a sign. */
const PROBE_AFTER_MS = 30_000

export interface HttpServer {
  readonly app: FastifyInstance
  /** From now on calls are refused with "service is shutting down". */
  refuseCalls(): void
  /** Resolves once no request is being answered. */
  idle(): Promise<void>
}

export interface HttpServerOptions {
  /** Given, the console offers a tour of the demo. */
  readonly demo?: DemoSignatures
  /** Where the console was built to. */
  readonly consoleFolder?: string
}

/** Builds the server; listening is up to the caller. */
export async function createHttpServer(
  office: Office,
  config: Config,
  log: FastifyBaseLogger,
  { demo, consoleFolder = CONSOLE_FOLDER }: HttpServerOptions = {},
): Promise<HttpServer> {
  let refusing = false
  const stopping = () => refusing
  const scope = { clock: office.clock, stopping }
  const { readTimeoutSeconds, writeTimeoutSeconds, maxBodyBytes } = config.http
  const { bodyTimeoutSeconds, connectionsWithoutToken, trustedProxies, wrongTokensPerMinute } = config.http
  const addresses = clientAddresses(trustedProxies)
  const wrongTokens = new WrongTokens(office.clock, wrongTokensPerMinute)
  // Clients keep idle connections for a while; a server that closes earlier resets them at random.
  const keepAliveTimeout = readTimeoutSeconds * 1_000
  const { webhooks, kafka } = office
  const webhookRequestId = requestIds(webhooks.xids)
  const { tokens } = config.auth
  const kafkaHashes = kafka?.calls.settings.tokenHashes ?? []
  const known = knownTokens(tokens, kafkaHashes)
  const sessions =
    known.length === 0
      ? null
      : new Sessions({ tokens: known, secret: await office.secret('sessions'), clock: office.clock })
  // Loaded when it is used, as the part of the office that it shows.
  const kafkaApi = kafka === null ? null : await import('../sources/kafka/routes.ts')
  const kafkaFacade =
    kafka === null || kafkaApi === null
      ? null
      : new kafkaApi.KafkaFacade({ calls: kafka.calls, tokens, ...config.http, wrongTokens, stopping })
  const app: FastifyInstance = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    // One logger for all requests: a child for each costs more than most of them would ever log.
    childLoggerFactory: (logger) => logger,
    exposeHeadRoutes: false,
    // A row key is an id of the caller's and a time, percent-encoded.
    routerOptions: { maxParamLength: MAX_PARAMETER_CHARACTERS },
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    genReqId: (request) =>
      facadeOf(pathOf(request.url ?? '')) === 'kafka' ? kafkaRequestId(request) : webhookRequestId(request),
    keepAliveTimeout,
    connectionTimeout: 0,
    requestTimeout: 0,
    maxRequestsPerSocket: 0,
    http: {
      headersTimeout: keepAliveTimeout + HEADERS_GRACE_MS,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_AFTER_MS,
    },
    clientErrorHandler: (error, socket) => refuseMalformed(error, socket),
    frameworkErrors: (error, request, reply) => {
      // The only one that clients can cause is a path that is not decodable.
      request.log.debug({ err: error }, 'request refused by the framework')
      if (kafkaFacade !== null && facadeOf(pathOf(request.url)) === 'kafka')
        kafkaFacade.answerUnrouted(request, reply)
      else sendError(request, reply, failure('path_unknown', { path: pathOf(request.url) }), office.clock)
    },
  })

  const readings = new OutboxReadings(() => office.outboxes.all(), office.clock)
  const metrics = new Metrics({
    depths: () => office.queues.depths(),
    letters: () => office.letters.ledger.gauges(),
    pulse: () => office.letters.ledger.pulse(),
    redrives: () => office.redrives.active(),
    outboxes: () => readings.read(),
    webhooks: () => webhooks.metrics.text(),
    ...(kafka === null ? {} : { kafka: () => kafka.metrics.text() }),
    clock: office.clock,
  })
  office.onStoreCall((call) => metrics.observeStoreCall(call))
  office.onRemoved((removed) => metrics.observeRemoved(removed))
  office.redrives.listen({
    step: (step) => metrics.redrives.observeStep(step),
    ended: (state) => metrics.redrives.observeEnded(state),
    resumed: () => metrics.redrives.observeResumed(),
  })
  const requests = countRequests(app)
  const liveCounts = new LiveCounts({
    read: () => office.letters.ledger.standing(),
    redrives: () => office.redrives.active(),
    clock: office.clock,
    log,
  })

  app.addHook(
    'onRequest',
    hostCheck({
      listen: config.host,
      allowed: config.http.allowedHosts,
      hasTokens: tokens.length > 0,
      clock: office.clock,
    }),
  )
  app.decorateRequest('clientAddress', '')
  app.addHook('onRequest', (request, _reply, done) => {
    request.clientAddress = addresses.of(request.raw)
    limitBodyTime(request.raw, bodyTimeoutSeconds)
    done()
  })
  app.decorateRequest('signedBody', null)
  app.decorateRequest('answerBytes', 0)
  const { gatewayAuth, openManagement } = webhooks.settings
  if (gatewayAuth.mode === 'hmac') {
    app.addHook('onRequest', signatureCheck({ gatewayAuth, clock: office.clock, ...config.http }))
  }
  app.addHook(
    'onRequest',
    gate(tokens, office.clock, {
      openWebhooks: openManagement,
      kafka: kafkaFacade,
      sessions,
      kafkaHashes,
      wrongTokens,
    }),
  )
  if (tokens.length > 0)
    boundStrangers(app, { most: connectionsWithoutToken, addresses, clock: office.clock })
  app.addHook('onResponse', (request, reply, done) => {
    const { url, config } = request.routeOptions
    // A colon of a path is written twice in its route.
    const path = url?.replace('::', ':')
    if (config.isStream !== true) metrics.observeRequest(path, reply.statusCode, reply.elapsedTime / 1_000)
    discardRest(request.raw)
    done()
  })
  logAccess(app)
  app.setErrorHandler((error, request, reply) => {
    if (!(error instanceof BartlebyError))
      request.log.error({ err: error, path: request.url }, 'request failed')
    sendError(request, reply, error instanceof BartlebyError ? error : failure('internal'), office.clock)
  })
  app.setNotFoundHandler((request, reply) => {
    if (isPage(request)) return sendConsolePage(reply, consoleFolder)
    answerUnknown(request, reply, office.clock, kafkaFacade)
  })

  await app.register(swagger, openapiOptions)
  await app.register(queueRoutes, {
    queues: office.queues,
    maxProduceBytes: config.queues.maxProduceBytes,
    time: config.testApi ? office : undefined,
    stopping,
  })
  await app.register(letterRoutes, {
    letters: office.letters,
    sourceHealth: sourceHealth({
      outboxes: (options) => readings.read(options),
      pausedConsumers: () => webhooks.pausedConsumers(),
      kafka: kafka === null ? null : () => kafka.standing(),
    }),
    ...scope,
  })
  await app.register(runRoutes<OfficeWork>, {
    runs: office.runs,
    once: (verb, key, act) => office.letters.once(verb, key, act),
    checkReach: async (run, caller) => {
      if (run.kind === REASSIGNMENT || expiresKafka(run)) requireKafka(caller)
      if (run.kind === REDRIVE_RUN) await checkReach(office.redrives, run.id, caller)
    },
    ...scope,
  })
  await app.register(redriveRoutes, { redrives: office.redrives, ...scope })
  await app.register(operatorRoutes, { office, config, ...scope })
  await app.register(historyRoutes, { history: office.history, ...scope })
  await app.register(outboxRoutes, { readings, ...scope })
  await app.register(webhookAdminRoutes, { admin: webhooks.admin, ...scope })
  await app.register(kafkaAdminRoutes, { kafka, ...scope })
  if (kafkaApi !== null && kafkaFacade !== null)
    await app.register(kafkaApi.kafkaRoutes, { facade: kafkaFacade })
  await app.register(webhookRoutes, {
    webhooks,
    maxBodyBytes,
    readTimeoutSeconds,
    writeTimeoutSeconds,
    ...scope,
  })
  await app.register(healthRoutes, {
    ping: () => office.ping(),
    outboxes: (options) => readings.read(options),
    pausedConsumers: () => webhooks.pausedConsumers(),
    missingIndexes: () => office.missingIndexes(),
    ...(kafka === null ? {} : { kafka: () => kafka.standing() }),
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
    tokens: known,
    visitor: visitorOf(tokens, kafkaHashes),
    sessions,
    face: {
      environment: { name: config.console.environment, colour: config.console.colour },
      sources: { outbox: office.outboxes.all().length > 0, webhooks: true, kafka: kafka !== null },
      demo: demo ?? null,
    },
    wrongTokens,
    log,
    ...scope,
  })
  await app.register(eventRoutes, { liveCounts, ...scope })
  await app.register(assetRoutes, { folder: consoleFolder, clock: office.clock })
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

/** Counts the requests in flight, from their arrival to the end of their answer or connection. */
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

/** What is no HTTP at all gets an answer too, in the shape of the queue API: its path is not known. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy()
    return
  }
  const body = malformedRequestBody(error.code ?? error.message)
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n${body}`,
  )
}
