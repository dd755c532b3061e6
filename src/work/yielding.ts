/** How much of the store a run leaves to others: beside live traffic, on any server, it rests for several times its work. */
import { sleep } from '../core/waiting.ts'
import type { Database, Integer } from '../store/database.ts'
import { sql } from '../store/database.ts'

/** Calls a second that count as traffic: an idle office makes a few. */
const LIVE_CALLS = 60
/** Commits of all servers: an idle one makes some tens. */
const LIVE_COMMITS = 400
const LOOK_MS = 400
/** Older counts say nothing of now: calls of a start once cost half a second. */
const STALE_MS = 5_000

/** In durations of a batch: a seventh of one process of the store, which live traffic hardly feels. */
const REST = 6
const LONGEST_REST_MS = 500
/** On SQLite a batch never leaves the event loop: others get a turn. */
const TURN_MS = 1
/** Between unhurried steps. Beside an expiry a quarter of writes met the next step with a turn of 1 ms, an eighth with 2, a twentieth with 3. */
export const LONG_TURN_MS = 3

const readCommits = sql('runs.commits', {
  postgres: 'SELECT xact_commit AS commits FROM pg_stat_database WHERE datname = current_database()',
  sqlite: '',
})

export class Yielding {
  readonly #db: Database
  /** Since the last look: calls of others, and of runs. */
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

  /** Leaves the store to others after work of `tookMs`; beside live traffic for `times` as long. */
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

  /** Others would feel two batches at once. */
  get isLive(): boolean {
    return this.#isLive
  }

  async #look(): Promise<void> {
    const nowMs = performance.now()
    const seconds = (nowMs - this.#lookedAtMs) / 1_000
    // Of runs whose steps end at once, one looks: another would count from now on.
    this.#lookedAtMs = nowMs
    const commits = await this.#readCommits()
    const others = commits === null || this.#commits === null ? 0 : commits - this.#commits - this.#own
    this.#isLive = this.#calls / seconds > LIVE_CALLS || others / seconds > LIVE_COMMITS
    this.#begin(nowMs, commits)
  }

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
