/**
 * How much of the store a run leaves to others. Alone it goes as fast as it can; where there is live traffic, on this server or on
 * another one of the same store, it rests for several times as long as it worked.
 */
import { sleep } from '../core/waiting.ts'
import type { Database, Integer } from '../store/database.ts'
import { sql } from '../store/database.ts'

/** Calls a second from which on there is traffic: an office at rest makes a few of its own. */
const LIVE_CALLS = 60
/** The same of transactions of all servers: each at rest makes some tens. */
const LIVE_COMMITS = 400
/** How long is counted before it is judged again. */
const LOOK_MS = 400
/** What was counted before a run began, or while none was under way, says nothing of now: the calls of a start once cost half a second. */
const STALE_MS = 5_000

/** Of the time that a batch took: it has a seventh of one process of the store, which live traffic hardly feels. */
const REST = 6
const LONGEST_REST_MS = 500
/** On SQLite nothing of a batch leaves the event loop: others get their turn. */
const TURN_MS = 1
/**
 * The turn of others between steps that nobody is in a hurry for. A call is a millisecond on its way to the store: of writes beside an
 * expiry a quarter met the next step as well with a turn of one, an eighth with two, a twentieth with three.
 */
export const LONG_TURN_MS = 3

/** What the store has committed since its statistics began. */
const readCommits = sql('runs.commits', {
  postgres: 'SELECT xact_commit AS commits FROM pg_stat_database WHERE datname = current_database()',
  sqlite: '',
})

export class Yielding {
  readonly #db: Database
  /** Calls on this server that are no run's, and those that are, since the last look. */
  #calls = 0
  #own = 0
  #commits: number | null = null
  #lookedAtMs = 0
  #restedAtMs = Number.NEGATIVE_INFINITY
  #isLive = false

  constructor(db: Database) {
    this.#db = db
    db.onCall(({ verb }) => {
      if (verb.startsWith('run.') || verb.startsWith('redrive')) this.#own++
      else this.#calls++
    })
  }

  /** Leaves the store to others for a while, after work of `tookMs`; beside live traffic for `times` as long. */
  async rest(tookMs: number, signal: AbortSignal, times = REST, turnMs = TURN_MS): Promise<void> {
    const nowMs = performance.now()
    if (nowMs - this.#restedAtMs > STALE_MS) {
      this.#isLive = false
      this.#begin(nowMs)
    } else if (nowMs - this.#lookedAtMs >= LOOK_MS) await this.#look()
    this.#restedAtMs = performance.now()
    if (!this.#isLive && this.#db.dialect === 'postgres') return
    const restMs = this.#isLive ? Math.max(turnMs, Math.min(LONGEST_REST_MS, times * tookMs)) : turnMs
    await sleep(restMs, signal)
    this.#restedAtMs = performance.now()
  }

  /** Whether others use the store so much that they would feel two batches at once. */
  get isLive(): boolean {
    return this.#isLive
  }

  async #look(): Promise<void> {
    const nowMs = performance.now()
    const seconds = (nowMs - this.#lookedAtMs) / 1_000
    // Of runs that end their steps at once one looks: another would find what is counted from now on, which is nothing.
    this.#lookedAtMs = nowMs
    const commits = await this.#readCommits()
    const others = commits === null || this.#commits === null ? 0 : commits - this.#commits - this.#own
    this.#isLive = this.#calls / seconds > LIVE_CALLS || others / seconds > LIVE_COMMITS
    this.#begin(nowMs, commits)
  }

  /** Counts from now on. */
  #begin(nowMs: number, commits: number | null = null): void {
    this.#commits = commits
    this.#calls = 0
    this.#own = 0
    this.#lookedAtMs = nowMs
  }

  async #readCommits(): Promise<number | null> {
    if (this.#db.dialect === 'sqlite') return null
    const [row] = await this.#db.session('run.traffic', (session) =>
      session.rows<{ commits: Integer }>(readCommits),
    )
    return row === undefined ? null : Number(row.commits)
  }
}
