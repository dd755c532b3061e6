/**
 * Counting dead jobs by checkpoints, as it was first proposed: a summary per consumer, to which every so often those jobs are added
 * that died since the last checkpoint, and from which acts on dead jobs subtract. It is kept here, small and faithful, to be told
 * the same stories as the office: a story that it gets right proves nothing.
 */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'

const QUEUED = 1001
const INFLIGHT = 1002
const DEAD = 1004
const LOCK = 'dlq-summary-updater'

const TABLES = `
  CREATE TABLE consumer (id TEXT PRIMARY KEY, public_id TEXT NOT NULL, name TEXT NOT NULL, channel TEXT NOT NULL);
  CREATE TABLE job (id TEXT PRIMARY KEY, consumer TEXT NOT NULL, status INTEGER NOT NULL, status_changed_at INTEGER NOT NULL);
  CREATE TABLE lock (lock_id TEXT PRIMARY KEY, attained_at INTEGER NOT NULL);
  CREATE TABLE dlq_summary (
    consumer TEXT PRIMARY KEY, consumer_name TEXT NOT NULL, channel TEXT NOT NULL,
    dead_count INTEGER NOT NULL DEFAULT 0, last_checked_at INTEGER NOT NULL
  );`

export interface NaiveOptions {
  /** Whether a requeue subtracts what it requeued: the proposal says so, the first release did not. Default true. */
  readonly requeueSubtracts?: boolean
  /** Whether subtracting stops at zero, "so that the count is never negative". Default false. */
  readonly floor?: boolean
  /** The times of jobs are kept to so many microseconds. Default 1. */
  readonly grainUs?: number
}

/** The tables that all instances share. */
export class NaiveStore {
  readonly options: NaiveOptions
  /** How often all jobs were counted. */
  fullCounts = 0
  /** The next act ends, as a crash would end it, when the job is changed and the summary is not. */
  crashesBeforeSubtracting = false
  readonly #db = new DatabaseSync(':memory:')

  constructor(options: NaiveOptions = {}) {
    this.options = options
    this.#db.exec(TABLES)
  }

  consumer(id: string, { publicId = id, channel = 'c', name = id } = {}): void {
    this.run('INSERT INTO consumer VALUES (?, ?, ?, ?)', id, publicId, name, channel)
  }

  removeConsumer(id: string): void {
    this.run('DELETE FROM consumer WHERE id = ?', id)
    this.run('DELETE FROM dlq_summary WHERE consumer = ?', id)
  }

  /** A job dies, for the first time or again. */
  die(job: string, consumer: string, at: number): void {
    const { grainUs = 1 } = this.options
    const changedAt = at - (at % grainUs)
    this.run(
      `INSERT INTO job VALUES (?, ?, ${DEAD}, ?)
       ON CONFLICT (id) DO UPDATE SET status = excluded.status, status_changed_at = excluded.status_changed_at`,
      ...[job, consumer, changedAt],
    )
  }

  run(text: string, ...values: SQLInputValue[]): number {
    return Number(this.#db.prepare(text).run(...values).changes)
  }

  rows(text: string, ...values: SQLInputValue[]): Record<string, unknown>[] {
    return this.#db.prepare(text).all(...values)
  }

  /** What counting gives. */
  actual(consumer: string): number {
    const [row] = this.rows(
      `SELECT count(*) AS dead FROM job WHERE consumer = ? AND status = ${DEAD}`,
      consumer,
    )
    return Number(row?.dead)
  }

  /** What the summary says: what `/dlq-status` answers. */
  counted(consumer: string): number {
    const [row] = this.rows('SELECT dead_count FROM dlq_summary WHERE consumer = ?', consumer)
    return Number(row?.dead_count ?? 0)
  }

  /** Takes locks away whose holders must be dead, going by their age. */
  removeOldLocks(before: number): void {
    this.run('DELETE FROM lock WHERE attained_at < ?', before)
  }
}

/** One of the processes that share the tables, with its gauge. */
export class NaiveInstance {
  readonly #store: NaiveStore
  /** What `/metrics` shows, by consumer. */
  readonly gauge = new Map<string, number>()

  constructor(store: NaiveStore) {
    this.#store = store
  }

  requeue(job: string): void {
    const consumer = this.#consumerOf(job)
    const rows = this.#store.run(`UPDATE job SET status = ${QUEUED} WHERE id = ? AND status = ${DEAD}`, job)
    if (this.#store.options.requeueSubtracts ?? true) this.#subtract(consumer, rows)
  }

  requeueAll(consumer: string): void {
    const rows = this.#store.run(
      `UPDATE job SET status = ${QUEUED} WHERE consumer = ? AND status = ${DEAD}`,
      consumer,
    )
    if (this.#store.options.requeueSubtracts ?? true) this.#subtract(consumer, rows)
  }

  /** A pull consumer takes a dead job: a way out of the dead jobs that nobody thought of. */
  take(job: string): void {
    this.#store.run(`UPDATE job SET status = ${INFLIGHT} WHERE id = ? AND status = ${DEAD}`, job)
  }

  /** Deletes a job for the consumer that is named in the URL, by its public id. */
  remove(job: string, consumer: string): void {
    const rows = this.#store.run(
      `DELETE FROM job WHERE id = ? AND status = ${DEAD} AND (SELECT public_id FROM consumer WHERE id = job.consumer)
         = (SELECT public_id FROM consumer WHERE id = ?)`,
      ...[job, consumer],
    )
    this.#subtract(consumer, rows)
  }

  purge(consumer: string): void {
    this.#subtract(
      consumer,
      this.#store.run(`DELETE FROM job WHERE consumer = ? AND status = ${DEAD}`, consumer),
    )
  }

  /** A checkpoint from its beginning to its end. */
  checkpoint(now: number): void {
    for (const _ of this.checkpointInSteps(() => now));
  }

  /**
   * A checkpoint, statement by statement; it may be left where it is, as a crash would leave it. `now` is asked when something is
   * written.
   */
  *checkpointInSteps(now: () => number): Generator<'locked' | 'counted' | 'added'> {
    if (!this.#tryLock(now())) return
    yield 'locked'
    const found = this.#diedSince(this.#lastChecked())
    yield 'counted'
    for (const { consumer, dead } of found) {
      this.#store.run(
        `INSERT INTO dlq_summary SELECT id, name, channel, ?, ? FROM consumer WHERE id = ?
         ON CONFLICT (consumer) DO UPDATE SET dead_count = dead_count + excluded.dead_count,
           last_checked_at = excluded.last_checked_at`,
        ...[Number(dead), now(), String(consumer)],
      )
      yield 'added'
    }
    for (const { consumer, dead_count } of this.#store.rows('SELECT consumer, dead_count FROM dlq_summary')) {
      this.gauge.set(String(consumer), Number(dead_count))
    }
    this.release()
  }

  /** Gives the lock back: to whom it belongs is not written down. */
  release(): void {
    this.#store.run('DELETE FROM lock WHERE lock_id = ?', LOCK)
  }

  #tryLock(now: number): boolean {
    return this.#store.run('INSERT INTO lock VALUES (?, ?) ON CONFLICT DO NOTHING', LOCK, now) === 1
  }

  #lastChecked(): number | null {
    const [row] = this.#store.rows('SELECT max(last_checked_at) AS last FROM dlq_summary')
    return row?.last == null ? null : Number(row.last)
  }

  #diedSince(last: number | null) {
    if (last === null) {
      this.#store.fullCounts++
      return this.#store.rows(
        `SELECT consumer, count(*) AS dead FROM job WHERE status = ${DEAD} GROUP BY consumer`,
      )
    }
    return this.#store.rows(
      `SELECT consumer, count(*) AS dead FROM job WHERE status = ${DEAD} AND status_changed_at > ? GROUP BY consumer`,
      last,
    )
  }

  #consumerOf(job: string): string {
    return String(this.#store.rows('SELECT consumer FROM job WHERE id = ?', job)[0]?.consumer)
  }

  #subtract(consumer: string, rows: number): void {
    if (this.#store.crashesBeforeSubtracting) return
    const less = this.#store.options.floor ? 'max(dead_count - ?, 0)' : 'dead_count - ?'
    this.#store.run(`UPDATE dlq_summary SET dead_count = ${less} WHERE consumer = ?`, rows, consumer)
    const shown = this.gauge.get(consumer)
    if (shown !== undefined) this.gauge.set(consumer, shown - rows)
  }
}
