/**
 * Retention: a round an hour removes what is past its time, in bounded steps: history, then letters, then idempotency keys, activity, empty
 * drawers and runs.
 * Resolved letters age from their resolution, expired ones from their expiry or a later failure, history from its making; pending letters
 * stay. A round has one history row, of the office itself, and every step that removes something brings it up to date in its own transaction:
 * nothing is ever gone that the row does not tell of.
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
  /** Those that keep something about their letters beside them. */
  readonly sources?: readonly LetterSource[]
  readonly log: Log
}

/** What a round or a step of it removed. */
export interface Removed {
  readonly letters: number
  readonly history: number
}

/** How long letters that are resolved or expired are kept, unless somebody says otherwise. */
export const DEFAULT_RETENTION_DAYS = 90

const KIND = 'retention'
/** A server that is started anew every half hour would otherwise never come to it. */
const ROUNDS = { about: 'what is past its time', firstUs: 60_000_000n, everyUs: 3_600_000_000n }
/** Rows of one transaction: a few milliseconds, also on SQLite, where everybody waits for it. */
const BATCH = 500

/** Until when a letter is kept at least, and can be restored; null for a pending one, which stays. */
export function keptUntil(
  { resolvedAt, expiredAt, lastFailureAt }: Pick<Letter, 'resolvedAt' | 'expiredAt' | 'lastFailureAt'>,
  retentionDays: number,
): Instant | null {
  const since = expiredAt !== null && expiredAt < lastFailureAt ? lastFailureAt : (expiredAt ?? resolvedAt)
  return since === null ? null : later(since, BigInt(retentionDays) * DAY_US)
}

/** How far a round is. Numbers beyond 2^53 are in digits. */
interface Place {
  readonly stage: number
  /** Where its stage goes on; null: at its beginning. */
  readonly from: readonly string[] | null
  /** What is gone: how many letters of each engine, and how many rows of history. */
  readonly letters: Readonly<Record<string, number>>
  readonly history: number
  /** The history row that says so; there is none before the first. */
  readonly row: { readonly series: number; readonly createdAt: string; readonly id: string } | null
}

type Round = Run<null, Place | null>

const BEGINNING: Place = { stage: 0, from: null, letters: {}, history: 0, row: null }

/** What a stage removed, and where it goes on; null when there is nothing left. */
interface Batch {
  readonly letters?: ReadonlyMap<string, number>
  readonly history?: number
  readonly next: readonly bigint[] | null
}

type Stage = (work: OfficeWork, from: readonly bigint[] | null, before: Instant) => Promise<Batch>

const LONG_AGO = -(2n ** 63n)

const OLD = rowShape({ id: letterId, engine: text, since: big })

/** The oldest letters of a lane behind ($2, $3), in the order of its index; what others have locked is left for the next run. */
const oldest = (lane: string, status: number, since: string): Statement =>
  sql(
    `letters.nextToRemove.${lane}`,
    `SELECT id, engine, ${since} AS since FROM bartleby.letters INDEXED BY letters_${lane}
     WHERE status = ${status} AND ${since} < $1 AND (${since}, id) > ($2, $3) ORDER BY ${since}, id LIMIT (SELECT $4::bigint)
     FOR UPDATE SKIP LOCKED`,
    { bigints: true },
  )

/** An expired letter is kept from the later of its last failure and its expiry; a reporter's clock may be ahead of ours. */
const LANES = {
  resolved: oldest('resolved', STATUS.Resolved, 'resolved_at'),
  expired: oldest('expired', STATUS.Expired, 'greatest(expired_at, last_failure_at)'),
}

export class Retention {
  readonly #runs: OfficeRuns
  readonly #options: RetentionOptions
  readonly #stages: readonly Stage[]
  readonly #listeners: ((removed: Removed) => void)[] = []

  /** Defines its rounds; they are carried out by the runs. */
  constructor(runs: OfficeRuns, options: RetentionOptions) {
    this.#runs = runs
    this.#options = options
    // History first: the capture of a plain queue's letter is not younger than the letter, and needs it to be told. The source ids before
    // it: one that is known always has its entry.
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

  /** Tells `listener` after every step on this server what it removed. */
  onRemoved(listener: (removed: Removed) => void): void {
    this.#listeners.push(listener)
  }

  /** One round now, or the one that is under way; gives what it removed. */
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
    work.afterCommit(() => this.#tell(removed, isOver ? sumOf(next) : null))
    return { place: next, done: removed.letters + removed.history, next: isOver ? 'finished' : 'more' }
  }

  /**
   * Takes letters of a lane out for good, with their attempts, their searchable text and what their sources keep about them; the counts
   * keep how many. A pending letter is in neither lane.
   */
  #removing(lane: keyof typeof LANES): Stage {
    return async (work, from, before) => {
      const [since = LONG_AGO, id = 0n] = from ?? []
      const old = await OLD.all(work.tx, LANES[lane], before, since, id, BATCH)
      const last = old.at(-1)
      if (last === undefined) return { next: null }
      const gone = old.map(({ id, engine }) => ({ id, engine, deadQueue: null, place: null }))
      await change(work, 'remove', gone, NOBODY)
      for (const source of this.#options.sources ?? []) await source.moved(work, gone, 'remove')
      const letters = new Map<string, number>()
      for (const { engine } of gone) letters.set(engine, (letters.get(engine) ?? 0) + 1)
      return { letters, next: old.length < BATCH ? null : [last.since, last.id] }
    }
  }

  /** Adds what a step removed to the row of its round. */
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

  #tell(step: Removed, round: Removed | null): void {
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
