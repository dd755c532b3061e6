/**
 * The connections of an adoption: one works, one watches. Nothing here queues behind a long transaction, because
 * everybody else would queue behind it: a step that does not get its lock within a moment steps back, lets others pass,
 * and comes again.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { sleep } from '../../../../core/waiting.ts'
import { StoreUnavailable } from '../../../../store/database.ts'
import { lookBehind } from '../../../../store/postgres-connection.ts'
import type { RunSql } from '../../table/layout.ts'
import { AdoptionBlocked, type AdoptSettings, patiently } from '../report.ts'

export const LOCK_TIMEOUT_MS = 250
const STEP_BACK = { baseMs: 100, factor: 2, maxMs: 2_000, jitter: 0.5 }
const WATCH_MS = 500
/** Longer than a server allows itself: a person waits, and connects once. */
const ADOPT_CONNECT_TIMEOUT_MS = 10_000
const OTHER_ADOPTION_MS = 10_000

const LOCK_NOT_AVAILABLE = '55P03'
const DEADLOCK = '40P01'
/** The first with `gen_random_uuid()`. */
const OLDEST_SERVER = 130_000

const LOCK_SPACE = 0x0b_a7_1e_b1

/** Limits of role or database that would end a long step; a server that does not know one leaves it out. */
const WITHOUT_LIMITS = `SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN
  ('lock_timeout', 'statement_timeout', 'transaction_timeout', 'idle_session_timeout', 'idle_in_transaction_session_timeout')`

/** Backends in words. Those of other roles may be hidden. */
const BACKENDS = `SELECT 'process ' || pid || coalesce(' (' || nullif(concat_ws(', ', nullif(application_name, ''), usename,
    state, 'transaction open for ' || extract(epoch FROM clock_timestamp() - xact_start)::int || ' s'), '') || ')', '') AS backend
  FROM pg_stat_activity`

export class AdoptSession {
  readonly #client: pg.Client
  readonly #watch: pg.Client
  readonly #settings: AdoptSettings
  readonly #pid: number
  readonly #stop = (): void => {
    void this.#ask('SELECT pg_cancel_backend($1)', [this.#pid])
  }
  #waitsFor = ''
  /** Questions to the watching connection go one after the other. */
  #asked: Promise<unknown> = Promise.resolve()

  private constructor(client: pg.Client, watch: pg.Client, pid: number, settings: AdoptSettings) {
    this.#client = client
    this.#watch = watch
    this.#pid = pid
    this.#settings = settings
    settings.signal?.addEventListener('abort', this.#stop)
  }

  /** A dry run cannot write. */
  static async open(url: string, settings: AdoptSettings): Promise<AdoptSession> {
    const { default: driver } = await import('pg')
    const connect = async (name: string): Promise<pg.Client> => {
      const client = new driver.Client({
        connectionString: url,
        application_name: name,
        connectionTimeoutMillis: ADOPT_CONNECT_TIMEOUT_MS,
        keepAlive: true,
      })
      // Statements report a lost connection.
      client.on('error', () => {})
      try {
        await client.connect()
      } catch (error) {
        throw new StoreUnavailable(`cannot connect to PostgreSQL: ${reasonOf(error)}`, { cause: error })
      }
      return client
    }
    const client = await connect('bartleby-adopt')
    try {
      const { rows } = await client.query(
        `SELECT pg_backend_pid() AS pid, current_setting('server_version_num')::int AS version`,
      )
      if (rows[0].version < OLDEST_SERVER) throw new AdoptionBlocked('adoption needs PostgreSQL 13 or newer')
      if ((await lookBehind(client, ADOPT_CONNECT_TIMEOUT_MS)).isPooled)
        throw new AdoptionBlocked(
          "a pooler stands between, and an adoption needs a session of its own: give PostgreSQL's own address",
        )
      await client.query(WITHOUT_LIMITS)
      // The server notices a killed adoption within a second. Not known everywhere.
      await client.query(`SET client_connection_check_interval = '1s'`).catch(() => {})
      if (settings.dryRun) await client.query('SET default_transaction_read_only = on')
      return new AdoptSession(client, await connect('bartleby-adopt-watch'), rows[0].pid, settings)
    } catch (error) {
      await client.end()
      throw error
    }
  }

  async close(): Promise<void> {
    this.#settings.signal?.removeEventListener('abort', this.#stop)
    await this.#asked
    await Promise.allSettled([this.#client.end(), this.#watch.end()])
  }

  /** One statement, or several without parameters. */
  readonly run: RunSql = async (text, parameters) => {
    const { rows } = await this.#query(text, parameters.length === 0 ? undefined : [...parameters])
    return rows ?? []
  }

  async change(text: string): Promise<number> {
    return (await this.#query(text)).rowCount ?? 0
  }

  async #query(text: string, parameters?: unknown[]): Promise<pg.QueryResult> {
    try {
      return await this.#client.query(text, parameters)
    } catch (error) {
      this.#settings.signal?.throwIfAborted()
      throw error
    }
  }

  /** Makes sure that no other adoption of the table runs. The lock belongs to the session. */
  async alone(sqlTable: string, table: string): Promise<void> {
    const key = `hashtext(coalesce(to_regclass($2)::oid::text, $2))`
    const deadlineMs = performance.now() + Math.min(OTHER_ADOPTION_MS, this.#settings.lockWaitMs)
    for (;;) {
      const [answer] = await this.run(`SELECT pg_try_advisory_lock($1::int, ${key}) AS locked`, [
        LOCK_SPACE,
        sqlTable,
      ])
      if (answer?.locked === true) return
      const others = await this.run(
        `${BACKENDS} WHERE pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted
           AND classid::bigint = $1 AND objid::bigint = ${key}::bigint & 4294967295)`,
        [LOCK_SPACE, sqlTable],
      )
      const reason = `another adoption of '${table}' is running${listed(others)}`
      if (performance.now() > deadlineMs) throw new AdoptionBlocked(reason)
      this.#reportWait(reason)
      await pause(200, undefined, { signal: this.#settings.signal })
    }
  }

  /** Runs what needs a lock that others wait for: at once, after stepping back, or never. */
  async briefly(text: string): Promise<void> {
    let blockers: Promise<string>
    const attempt = async () => {
      const over = new AbortController()
      blockers = this.#blockersSoon(over.signal)
      await this.run(text, [])
      over.abort()
    }
    await patiently(this.#settings, STEP_BACK, attempt, async (error, tries) => {
      await this.#client.query('ROLLBACK').catch(() => {})
      if (codeOf(error) !== LOCK_NOT_AVAILABLE && codeOf(error) !== DEADLOCK) return null
      const reason = `the lock on the table is held${await blockers}`
      // Short transactions come and go; one that is there at the third try is worth a word.
      if (tries >= 3) this.#reportWait(`${reason}; trying again`)
      return reason
    })
  }

  /** Builds an index while others work; reports how far it is, or for whom it waits. */
  async build(text: string, label: string): Promise<void> {
    const over = new AbortController()
    const watching = this.#watchBuild(label, over.signal)
    try {
      await this.run(text, [])
    } finally {
      over.abort()
      await watching
    }
  }

  /** Open transactions that have touched the table, the oldest first. */
  async holdersOf(sqlTable: string): Promise<string> {
    const holders = await this.run(
      `${BACKENDS} WHERE pid <> $2 AND pid IN (SELECT pid FROM pg_locks WHERE granted AND relation = to_regclass($1)::oid)
       ORDER BY xact_start LIMIT 3`,
      [sqlTable, this.#pid],
    )
    return holders.map(({ backend }) => String(backend)).join(', ')
  }

  #reportWait(reason: string): void {
    // The reason without its seconds.
    const same = reason.replace(/open for \d+ s/g, '')
    if (same !== this.#waitsFor) this.#settings.onWait(reason)
    this.#waitsFor = same
  }

  /** Who holds the lock that the statement just sent waits for. */
  async #blockersSoon(over: AbortSignal): Promise<string> {
    await sleep(LOCK_TIMEOUT_MS / 2, over)
    if (over.aborted) return ''
    return listed(
      await this.#ask(`${BACKENDS} WHERE pid = ANY(pg_blocking_pids($1)) ORDER BY xact_start LIMIT 3`, [
        this.#pid,
      ]),
    )
  }

  /** Asks the watching connection; no answer is no harm. */
  #ask(text: string, parameters: readonly unknown[]): Promise<readonly Record<string, unknown>[]> {
    const answer = this.#asked.then(async () => {
      try {
        return (await this.#watch.query(text, [...parameters])).rows
      } catch {
        return []
      }
    })
    this.#asked = answer
    return answer
  }

  async #watchBuild(label: string, over: AbortSignal): Promise<void> {
    const { onProgress } = this.#settings
    while (!over.aborted) {
      await sleep(WATCH_MS, over)
      if (over.aborted) return
      const [state] = await this.#ask(
        `SELECT phase, blocks_done AS done, blocks_total AS total, current_locker_pid AS locker
         FROM pg_stat_progress_create_index WHERE pid = $1`,
        [this.#pid],
      )
      if (over.aborted || state === undefined) continue
      const [done, expected] = [Number(state.done), Number(state.total)]
      if (expected > 0) onProgress({ label, done, expected, unit: 'blocks' })
      if (String(state.phase).startsWith('waiting') && Number(state.locker) > 0) {
        const lockers = await this.#ask(`${BACKENDS} WHERE pid = $1`, [state.locker])
        this.#reportWait(`${label} waits for transactions that began before it${listed(lockers)}`)
      }
    }
  }
}

/** With the lock timeout that keeps others from waiting for long. */
export const brief = (text: string): string =>
  `BEGIN;\nSET LOCAL lock_timeout = '${LOCK_TIMEOUT_MS}ms';\n${text};\nCOMMIT;`

export const codeOf = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined

/** Errors of several addresses have an empty message. */
const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message || String(codeOf(error) ?? error.name) : String(error)

const listed = (backends: readonly { readonly backend?: unknown }[]): string =>
  backends.length === 0 ? '' : `: ${backends.map(({ backend }) => String(backend)).join(', ')}`
