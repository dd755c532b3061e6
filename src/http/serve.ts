/**
 * A running server: an open office behind a listening socket. When it stops, the listener stays open until everybody is answered: clients
 * take "connection refused" for an outage, and "shutting down" not.
 */
import type { AddressInfo } from 'node:net'
import pino, { type Logger } from 'pino'
import { type Config, checkExposure, officeOptionsOf } from '../config/index.ts'
import type { Clock } from '../core/clock.ts'
import { ConfigError } from '../core/settings/config-error.ts'
import { TestClock } from '../core/test-clock.ts'
import type { DemoSignatures } from '../demo/story/story.ts'
import { Office } from '../office.ts'
import type { SourceModule } from '../sources/source-module.ts'
import { createHttpServer, type HttpServer } from './server.ts'

interface ServeOptions {
  readonly clock?: Clock
  /** Default: JSON lines on standard error or in the configured file, at the configured level. */
  readonly log?: Logger
  /** Sources of your own, beside the listed ones. */
  readonly sources?: readonly SourceModule[]
  /** With it the console offers a tour of the demo. */
  readonly demo?: DemoSignatures
  /** Runs when the office is open and before anybody is served; when it fails, nobody is. */
  readonly prepare?: (office: Office) => Promise<void>
}

export interface RunningServer {
  readonly url: string
  readonly office: Office
  /** Answers who waits, then closes listener, connections and store. Safe to call more than once. */
  stop(): Promise<void>
}

/** The longest stop; what is unanswered by then is cut off. */
const STOP_MS = 8_000

/** Standard output belongs to what the command prints. */
const STANDARD_ERROR = 2

export async function serve(config: Config, options: ServeOptions = {}): Promise<RunningServer> {
  checkExposure(config)
  const clock = options.clock ?? (config.testApi ? new TestClock() : undefined)
  const log = options.log ?? openLog(config.log)
  const office = await Office.open({
    ...officeOptionsOf(config),
    ...(options.sources === undefined ? {} : { sources: options.sources }),
    log,
    ...(clock === undefined ? {} : { clock }),
  })
  try {
    await options.prepare?.(office)
    const server = await createHttpServer(office, config, log, {
      ...(options.demo === undefined ? {} : { demo: options.demo }),
    })
    await server.app.listen({ host: config.host, port: config.port })
    let stopped: Promise<void> | undefined
    const stop = () => {
      stopped ??= stopInOrder(server, office, log)
      return stopped
    }
    return { url: urlOf(server), office, stop }
  } catch (error) {
    await office.close()
    throw error
  }
}

function openLog({ level, file }: Config['log']): Logger {
  if (file === undefined) return pino({ level }, pino.destination(STANDARD_ERROR))
  try {
    // Opened at once and written line by line: the last words of a server that died matter most.
    return pino({ level }, pino.destination({ dest: file, append: true, mkdir: true, sync: true }))
  } catch (error) {
    throw new ConfigError([`log.file: cannot be written: ${error instanceof Error ? error.message : error}`])
  }
}

function urlOf({ app }: HttpServer): string {
  // Only pipes have a name instead of an address.
  const { address, family, port } = app.server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

async function stopInOrder(server: HttpServer, office: Office, log: Logger): Promise<void> {
  const { promise: timeIsUp, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, STOP_MS)
  try {
    server.refuseCalls()
    // A failing store must not keep the listener open.
    const drained = office.drain().catch((error: unknown) => log.error({ err: error }, 'draining failed'))
    const answered = drained.then(() => server.idle())
    await Promise.race([answered, timeIsUp])
    const closed = server.app.close()
    await Promise.race([closed, timeIsUp])
    server.app.server.closeAllConnections()
    await closed
  } finally {
    clearTimeout(timer)
    await office.close()
  }
}
