/** What a source brings to a server: routes, the shape of its API, tokens, health and metrics. */
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { Instant } from '../core/clock.ts'
import type { KnownToken, OwnTokens, WrongTokens } from './auth.ts'
import type { ApiScope } from './calls.ts'
import type { RequestLimits } from './exact-answer.ts'
import type { Facade } from './facade.ts'
import type { SOURCE_STATES } from './shapes.ts'

export interface ServerScope extends ApiScope, RequestLimits {
  readonly writeTimeoutSeconds: number
  /** Of the server and of sources. */
  readonly tokens: readonly KnownToken[]
  readonly wrongTokens: WrongTokens
  readonly log: FastifyBaseLogger
  /** Only on a server started for tests. */
  readonly time: TimeControl | undefined
}

/** Moves a server's time; everything due has happened when a move resolves. */
export interface TimeControl {
  freezeClock(at: Instant): Promise<void>
  advanceClock(us: bigint): Promise<void>
}

interface SourceHttp {
  /** Whether this server has some of it. Absent: every server has. */
  isPresent?(): boolean
  /** Absent: the server's tokens are good for its letters too. */
  readonly ownTokens?: OwnTokens
  serve(server: ServerScope): ServedApi | Promise<ServedApi>
}

export interface ServedApi {
  /** Absent: it has calls below `/api/` only. */
  readonly facade?: Facade
  routes(app: FastifyInstance): Promise<void>
}

export interface SourceHealth {
  readonly state: (typeof SOURCE_STATES)[number]
  /** What is wrong, or how to use it, for those who may see the office. */
  readonly note: string | null
  /** For everybody: without names of users' things, and without other systems' words. */
  readonly checks?: Readonly<Record<string, HealthCheck>>
}

export interface HealthCheck {
  readonly status: 'pass' | 'warn' | 'fail'
  readonly output: string | null
}

export interface ServedSource {
  readonly http?: SourceHttp
  /** In Prometheus' text format, each line ended; also while the store fails. */
  metrics?(): Promise<string>
  /** Within `timeoutMs`. Absent: it is the office itself, and well when that answers. */
  health?(timeoutMs: number): Promise<SourceHealth>
  /** Whether it does not work while requests can be served. From memory: probes ask often. */
  isDegraded?(): boolean
}

export const WELL: SourceHealth = { state: 'ok', note: null }
