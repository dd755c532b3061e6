/** What a source brings to a server: routes, the shape of its own API, tokens, health and metrics. */
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { Instant } from '../core/clock.ts'
import type { KnownToken, OwnTokens, WrongTokens } from './auth.ts'
import type { ApiScope } from './calls.ts'
import type { RequestLimits } from './exact-answer.ts'
import type { Facade } from './facade.ts'
import type { SOURCE_STATES } from './shapes.ts'

/** What a server lends to a source. */
export interface ServerScope extends ApiScope, RequestLimits {
  readonly writeTimeoutSeconds: number
  /** All that are known, those of sources too. */
  readonly tokens: readonly KnownToken[]
  readonly wrongTokens: WrongTokens
  readonly log: FastifyBaseLogger
  /** Given on a server that was started for tests. */
  readonly time: TimeControl | undefined
}

/** Moves a server's time; everything that comes due has happened once a move resolves. */
export interface TimeControl {
  freezeClock(at: Instant): Promise<void>
  advanceClock(us: bigint): Promise<void>
}

export interface SourceHttp {
  /** Whether this server has some of it. Left out: as every server has. */
  isPresent?(): boolean
  /** Left out: tokens of the server are good for its letters too. */
  readonly ownTokens?: OwnTokens
  /** What it adds to one server. */
  serve(server: ServerScope): ServedApi | Promise<ServedApi>
}

export interface ServedApi {
  /** Left out: it has calls below `/api/` only. */
  readonly facade?: Facade
  routes(app: FastifyInstance): Promise<void>
}

export interface SourceHealth {
  readonly state: (typeof SOURCE_STATES)[number]
  /** What is wrong, or how to use it, for those who may see the office; null when there is nothing to say. */
  readonly note: string | null
  /** For everybody, by their names: without names of users' things, and without what other systems said. */
  readonly checks?: Readonly<Record<string, HealthCheck>>
}

export interface HealthCheck {
  readonly status: 'pass' | 'warn' | 'fail'
  readonly output: string | null
}

/** What a server asks of a source beside its letters. */
export interface ServedSource {
  readonly http?: SourceHttp
  /** In Prometheus' text format, each line ended; also while the store fails. */
  metrics?(): Promise<string>
  /** After so many milliseconds at the latest. Left out: it is the office itself, and well when that can be asked. */
  health?(patienceMs: number): Promise<SourceHealth>
  /** Whether it does not work while requests can be served. Told from memory: probes ask often. */
  isDegraded?(): boolean
}

export const WELL: SourceHealth = { state: 'ok', note: null }
