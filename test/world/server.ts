/** Bartleby servers for tests: in this process, or as a child that can be killed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { type Config, loadConfig } from '../../src/config/index.ts'
import type { Clock } from '../../src/core/clock.ts'
import { serve } from '../../src/http/serve.ts'
import type { Office } from '../../src/office.ts'
import type { WebhookSettings } from '../../src/sources/webhooks/settings.ts'

/** Some of the settings of a section, and of the sections in it; lists as a whole. */
export type DeepPartial<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [Key in keyof T]?: DeepPartial<T[Key]> }
    : T

export interface ServerOptions {
  /** What `--store` takes. */
  readonly store: string
  /** The test control endpoints; on unless said otherwise. */
  readonly testApi?: boolean
  /** Settings of the queues that differ from the defaults; only for a server in this process. */
  readonly queues?: Partial<Config['queues']>
  /** Settings of engines that differ from the defaults; only for a server in this process. */
  readonly engines?: Partial<Config['engines']>
  /** Outboxes; only for a server in this process. */
  readonly outbox?: Config['outbox']
  /** Settings of webhooks that differ from the configuration; only for a server in this process. */
  readonly webhooks?: DeepPartial<WebhookSettings>
  /** Limits of HTTP that differ from the configuration; only for a server in this process. */
  readonly http?: Partial<Config['http']>
  /** A configuration file. The port is a free one and the store the one given here, whatever it says. */
  readonly config?: string
  /** More of its environment; only for a process of its own. */
  readonly env?: Readonly<Record<string, string>>
  /** What it tells the time by; only for a server in this process. Left out: a clock of its own. */
  readonly clock?: Clock
  /** What it writes its log to; only for a server in this process. Left out: nothing. */
  readonly log?: Logger
}

export interface RunningServer {
  readonly url: string
  stop(): Promise<void>
}

const environmentOf = ({ testApi = true }: ServerOptions) => ({
  BARTLEBY_TEST_API: testApi ? '1' : '0',
  BARTLEBY_LOG_LEVEL: 'silent',
})

export interface ServerHere extends RunningServer {
  readonly office: Office
}

/** A server in this process, on a free port. */
export async function startServer(options: ServerOptions): Promise<ServerHere> {
  const config = loadConfig({
    env: environmentOf(options),
    flags: { host: '127.0.0.1', port: 0, store: options.store, config: options.config },
  })
  return serve(
    {
      ...config,
      queues: { ...config.queues, ...options.queues },
      engines: { ...config.engines, ...options.engines },
      outbox: options.outbox ?? config.outbox,
      http: { ...config.http, ...options.http },
      webhooks: overlaid(config.webhooks, options.webhooks),
    },
    {
      ...(options.clock === undefined ? {} : { clock: options.clock }),
      ...(options.log === undefined ? {} : { log: options.log }),
    },
  )
}

/** The settings with those of `above` put over them, section by section. */
export function overlaid<T extends object>(below: T, above: DeepPartial<NoInfer<T>> | undefined): T {
  const merged = new Map<string, unknown>(Object.entries(below))
  for (const [key, value] of Object.entries(above ?? {})) {
    const covered = merged.get(key)
    merged.set(key, isSection(value) && isSection(covered) ? overlaid(covered, value) : value)
  }
  // The keys are those of T, and so are the types of their values.
  return Object.fromEntries(merged) as T
}

const isSection = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export interface SpawnedServer extends RunningServer {
  readonly pid: number
  /** Ends it as a crash would. */
  kill9(): Promise<void>
  /** Asks it to end; resolves with its exit code. */
  term(): Promise<number | null>
  /** Resolves with the exit code once it has ended. */
  readonly ended: Promise<number | null>
}

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Kept between runs: compiling is a third of a server's start. */
const COMPILED = join(tmpdir(), 'bartleby-compiled')
const READY = /bartleby listening on (\S+)/

/** A server as users run it: a process of its own. */
export function spawnServer(options: ServerOptions): Promise<SpawnedServer> {
  return running(launch(options, []))
}

export interface StandbyServer {
  /** Lets it open its store and serve. */
  start(): Promise<SpawnedServer>
  /** Ends it without ever having served. */
  discard(): Promise<void>
}

/** A server that has loaded its program and waits: it starts in a fraction of the time. */
export function standbyServer(options: ServerOptions): StandbyServer {
  const child = launch(options, ['--import', './test/world/wait-for-word.ts'])
  return {
    start: () => {
      child.stdin?.end('start')
      return running(child)
    },
    discard: async () => {
      child.kill('SIGKILL')
      await endOf(child)
    },
  }
}

function launch(options: ServerOptions, nodeFlags: readonly string[]): ChildProcess {
  const args = [...nodeFlags, 'bin/bartleby.js', 'serve', '--port', '0', '--store', options.store]
  if (options.config !== undefined) args.push('--config', options.config)
  return spawn('node_modules/.bin/node', args, {
    cwd: root,
    env: { ...process.env, NODE_COMPILE_CACHE: COMPILED, ...environmentOf(options), ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
}

async function running(child: ChildProcess): Promise<SpawnedServer> {
  const url = await ready(child)
  const ended = endOf(child)
  const signal = (name: NodeJS.Signals) => {
    child.kill(name)
    return ended
  }
  return {
    url,
    pid: child.pid ?? 0,
    ended,
    kill9: async () => void (await signal('SIGKILL')),
    term: () => signal('SIGTERM'),
    stop: async () => void (await signal('SIGTERM')),
  }
}

async function endOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
  const [code] = await once(child, 'exit')
  return code
}

function ready(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = ''
    const listen = (chunk: Buffer) => {
      output = (output + chunk).slice(-10_000)
      const url = READY.exec(output)?.[1]
      if (url !== undefined) resolve(url)
    }
    child.stdout?.on('data', listen)
    // Read as well so that a full pipe never blocks the server, and to show why a start failed.
    child.stderr?.on('data', listen)
    child.once('error', reject)
    // 'close' and not 'exit': by then all of its output has been read.
    child.once('close', (code) => reject(new Error(`the server ended with code ${code}: ${output}`)))
  })
}
