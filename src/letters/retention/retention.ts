/**
 * Retention: an hourly round that removes old history, letters, idempotency keys, activity, empty drawers and runs, in bounded steps.
 * Resolved letters age from their resolution, expired ones from their expiry or a later failure, history from its recording; pending
 * letters stay. A round has one history row, which each step updates in its own transaction: nothing is gone that it does not tell of.
 */

import { type Instant, later } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { elapsedMs, keepRunRow } from '../../history/record.ts'
import { FROM_THE_OLDEST, forgetSources, removeHistory } from '../../history/retention.ts'
import { type Statement, sql } from '../../store/database.ts'
import { forgetKeys } from '../../store/idempotency.ts'
import { big, rowShape, text } from '../../store/row.ts'
import type { Run, Step } from '../../work/run.ts'
import { change, NOBODY } from '../change.ts'
import { type Letter, letterId, OFFICE, STATUS } from '../letter.ts'
import { forgetActivity } from '../numbers/activity.ts'
import { DAY_US } from '../numbers/counts.ts'
import { removeEmptyDrawers, stretchOf } from '../numbers/empty-drawers.ts'
import type { LetterSource } from '../source.ts'
import type { OfficeRuns, OfficeWork } from '../work.ts'

export interface RetentionOptions {
  readonly retentionDays: number
  /** Sources that keep something about their letters. */
  readonly sources?: readonly LetterSource[]
  readonly log: Log
}

export interface Removed {
  readonly letters: number
  readonly history: number
}

/** For resolved and expired letters. */
export const DEFAULT_RETENTION_DAYS = 90

const KIND = 'retention'
/** The first round comes early: a server may be restarted every half hour. */
const ROUNDS = { about: 'what is past its time', firstUs: 60_000_000n, everyUs: 3_600_000_000n }
/** Rows per transaction: a few milliseconds, also on SQLite, where everybody waits for it. */
const BATCH = 500

/** The earliest end of retention; null while pending. */
export function keptUntil(
  { resolvedAt, expiredAt, lastFailureAt }: Pick<Letter, 'resolvedAt' | 'expiredAt' | 'lastFailureAt'>,
  retentionDays: number,
): Instant | null {
  const since = expiredAt !== null && expiredAt < lastFailureAt ? lastFailureAt : (expiredAt ?? resolvedAt)
  return since === null ? null : later(since, BigInt(retentionDays) * DAY_US)
}

/** Progress of a round. Numbers beyond 2^53 are digits. */
interface Place {
  readonly stage: number
  /** null: at the start of its stage. */
  readonly from: readonly string[] | null
  /** Removed so far: letters by engine, and rows of history. */
  readonly letters: Readonly<Record<string, number>>
  readonly history: number
  /** The history row of the round, once there is one. */
  readonly row: { readonly series: number; readonly createdAt: string; readonly id: string } | null
}

type Round = Run<null, Place | null>

const BEGINNING: Place = { stage: 0, from: null, letters: {}, history: 0, row: null }

/** `next` null: nothing left. */
interface Batch {
  readonly letters?: ReadonlyMap<string, number>
  readonly history?: number
  readonly next: readonly bigint[] | null
}

type Stage = (work: OfficeWork, from: readonly bigint[] | null, before: Instant) => Promise<Batch>

const LONG_AGO = -(2n ** 63n)

const OLD = rowShape({ id: letterId, engine: text, since: big })

/** The oldest letters of a range behind ($2, $3), in the order of its index; locked ones are left for the next round. */
const oldest = (range: string, status: number, since: string): Statement =>
  sql(
    `letters.nextToRemove.${range}`,
    `SELECT id, engine, ${since} AS since FROM bartleby.letters INDEXED BY letters_${range}
     WHERE status = ${status} AND ${since} < $1 AND (${since}, id) > ($2, $3) ORDER BY ${since}, id LIMIT (SELECT $4::bigint)
     FOR UPDATE SKIP LOCKED`,
    { bigints: true },
  )

/** The later of last failure and expiry counts: a reporter's clock may be ahead. */
const RANGES = {
  resolved: oldest('resolved', STATUS.Resolved, 'resolved_at'),
  expired: oldest('expired', STATUS.Expired, 'greatest(expired_at, last_failure_at)'),
}

export class Retention {
  readonly #runs: OfficeRuns
  readonly #options: RetentionOptions
  readonly #stages: readonly Stage[]
  readonly #listeners: ((removed: Removed) => void)[] = []

  /** Defines its rounds; the runs carry them out. */
  constructor(runs: OfficeRuns, options: RetentionOptions) {
    this.#runs = runs
    this.#options = options
    // History first: a plain queue's capture is shown by its letter, which is not younger. Source ids before their entries.
    this.#stages = [
      forgetOldSources,
      removeOldHistory,
      this.#removing('expired'),
      this.#removing('resolved'),
      forgetOldKeys,
      async ({ tx, now }) => ({
        next: (await forgetActivity(tx, now, options.retentionDays, BATCH)) ? [] : null,
      }),
      removeDrawers,
      async (work) => ({ next: (await runs.forgetEnded(work)) === 0 ? null : [] }),
    ]
    runs.define<null, Place | null>({
      kind: KIND,
      batch: BATCH,
      rounds: ROUNDS,
      step: (work, run) => this.#step(work, run),
    })
  }

  /** Calls `listener` after every step on this server. */
  onRemoved(listener: (removed: Removed) => void): void {
    this.#listeners.push(listener)
  }

  async runNow(): Promise<Removed> {
    // Written by `step`.
    const run = (await this.#runs.round(KIND)) as Round | null
    return sumOf(run?.place ?? BEGINNING)
  }

  async #step(work: OfficeWork, run: Round): Promise<Step<Place>> {
    const { startedAt } = run
    const place = run.place ?? BEGINNING
    const stage = this.#stages[place.stage]
    if (stage === undefined) return { place, next: 'finished' }
    const before = later(startedAt, -BigInt(this.#options.retentionDays) * DAY_US)
    const batch = await stage(work, place.from?.map(BigInt) ?? null, before)
    const went =
      batch.next === null ? { stage: place.stage + 1, from: null } : { from: batch.next.map(String) }
    const next = { ...(await this.#record(work, run, place, batch)), ...went }
    const removed = sumOf({ letters: Object.fromEntries(batch.letters ?? []), history: batch.history ?? 0 })
    const isOver = next.stage === this.#stages.length
    work.afterCommit(() => this.#report(removed, isOver ? sumOf(next) : null))
    return { place: next, done: removed.letters + removed.history, next: isOver ? 'finished' : 'more' }
  }

  /** Removes letters with attempts, searchable texts and what their sources keep; counts keep how many. No pending letter has either status. */
  #removing(range: keyof typeof RANGES): Stage {
    return async (work, from, before) => {
      const [since = LONG_AGO, id = 0n] = from ?? []
      const old = await OLD.all(work.tx, RANGES[range], before, since, id, BATCH)
      const last = old.at(-1)
      if (last === undefined) return { next: null }
      const gone = old.map(({ id, engine }) => ({ id, engine, deadQueue: null, position: null }))
      await change(work, 'remove', gone, NOBODY)
      for (const source of this.#options.sources ?? []) await source.moved(work, gone, 'remove')
      const letters = new Map<string, number>()
      for (const { engine } of gone) letters.set(engine, (letters.get(engine) ?? 0) + 1)
      return { letters, next: old.length < BATCH ? null : [last.since, last.id] }
    }
  }

  async #record(
    work: OfficeWork,
    { id, startedAt, actor }: Round,
    place: Place,
    batch: Batch,
  ): Promise<Place> {
    const { letters: gone = new Map<string, number>(), history: rows = 0 } = batch
    if (gone.size === 0 && rows === 0) return place
    const letters = { ...place.letters }
    for (const [engine, count] of gone) letters[engine] = (letters[engine] ?? 0) + count
    const history = place.history + rows
    const known = place.row && {
      series: place.row.series,
      createdAt: BigInt(place.row.createdAt),
      id: BigInt(place.row.id),
    }
    const row = await keepRunRow(work.tx, known, {
      engine: OFFICE,
      operation: 'remove',
      status: 'Succeeded',
      instanceId: null,
      correlationId: id,
      createdAt: startedAt,
      durationMs: elapsedMs(startedAt, work.now),
      actor,
      output: Buffer.from(JSON.stringify({ letters, history })),
    })
    const { series, createdAt } = row
    return { ...place, letters, history, row: { series, createdAt: String(createdAt), id: String(row.id) } }
  }

  #report(step: Removed, round: Removed | null): void {
    if (step.letters + step.history > 0) for (const listener of this.#listeners) listener(step)
    if (round !== null && round.letters + round.history > 0)
      this.#options.log.info(round, 'removed what was past its time')
  }
}

const forgetOldSources: Stage = async ({ tx }, from, before) => ({
  next: listed(await forgetSources(tx, before, from?.[0] ?? FROM_THE_OLDEST, BATCH)),
})

const removeOldHistory: Stage = async ({ tx }, from, before) => {
  const { removed, next } = await removeHistory(tx, before, from?.[0] ?? FROM_THE_OLDEST, BATCH)
  return { history: removed, next: listed(next) }
}

const forgetOldKeys: Stage = async ({ tx, now }) => ({
  next: (await forgetKeys(tx, now, BATCH)) < BATCH ? null : [],
})

const removeDrawers: Stage = async ({ tx, now }, from) => {
  const [after, before] = (from ?? []).map(Number)
  const stretch = after === undefined || before === undefined ? await stretchOf(tx, now) : { after, before }
  const next = await removeEmptyDrawers(tx, stretch, BATCH)
  return { next: next && [BigInt(next.after), BigInt(next.before)] }
}

const listed = (next: bigint | null): readonly bigint[] | null => (next === null ? null : [next])

const sumOf = ({ letters, history }: Pick<Place, 'letters' | 'history'>): Removed => ({
  letters: Object.values(letters).reduce((sum, count) => sum + count, 0),
  history,
})
