/** Runs of this server: takes up those without an owner, renews their leases, and carries out step after step, each in one transaction. */
import { type Clock, type Instant, later } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { Rounds } from '../core/rounds.ts'
import type { Xid } from '../core/xid.ts'
import type { Database } from '../store/database.ts'
import { Pace } from './pace.ts'
import { type Course, LEASE_US, type RunKind, type RunWork, type Step, type WalkedKind } from './run.ts'
import {
  changeRun,
  type Lease,
  leaveRun,
  lockRun,
  type Run,
  type RunChange,
  readRun,
  removeRun,
  renewRuns,
  runsLeft,
  takeRun,
} from './run-rows.ts'
import { RunWalk } from './run-walk.ts'
import { LONG_TURN_MS, Yielding } from './yielding.ts'

export interface CarrierParts<Work extends RunWork> {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly inWork: <T>(verb: string, act: (work: Work) => Promise<T>) => Promise<T>
  /** False: runs are left to other servers. */
  readonly carriesOut: boolean
  readonly beginRounds: () => Promise<void>
  readonly pause: (work: Work, run: Run, note: string) => Promise<void>
  /** A run changed, here or elsewhere. */
  readonly onChange: () => void
}

export const LOOK_US = 1_000_000n
/** Per server; further runs wait, or go to another. */
const MOST_WALKS = 20
const CHANNEL = 'bartleby_runs'
/** One allowance for all rows. */
const ALL = ''

export class Carrier<Work extends RunWork> {
  /** Unique among all running servers. */
  readonly owner = crypto.randomUUID()
  readonly kinds = new Map<string, RunKind<Work> | WalkedKind<Work>>()
  readonly #parts: CarrierParts<Work>
  readonly #yielding: Yielding
  readonly #walks = new Map<Xid, { readonly walk: RunWalk; readonly over: Promise<void> }>()
  readonly #stopped = new AbortController()
  readonly #looks: Rounds
  /** Apart from looks, which may take longer than the three seconds of a lease. */
  readonly #renewals: Rounds
  #isStarted = false

  constructor(parts: CarrierParts<Work>) {
    this.#parts = parts
    const every = { clock: parts.clock, log: parts.log, everyUs: LOOK_US }
    this.#looks = new Rounds({
      ...{ ...every, name: 'runs.look', act: () => this.#takeUp() },
      trouble: 'runs were not looked for; the next round tries again',
    })
    this.#renewals = new Rounds({
      ...{ ...every, name: 'runs.renew', act: () => this.#renew() },
      trouble: 'the leases of runs were not renewed',
    })
    this.#yielding = new Yielding(parts.db)
  }

  get rounds(): readonly Rounds[] {
    return this.#parts.carriesOut ? [this.#looks, this.#renewals] : [this.#renewals]
  }

  get isStopped(): boolean {
    return this.#stopped.signal.aborted
  }

  start(): void {
    const { db, log } = this.#parts
    db.listen(CHANNEL, () => this.#hear()).catch((error: unknown) =>
      log.warn({ err: error }, 'changes of runs are not heard at once; they are looked for every second'),
    )
    this.#isStarted = true
    for (const rounds of this.rounds) rounds.start()
  }

  /** Ends after the current steps; another server, or the next start, continues. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    for (const { walk } of this.#walks.values()) walk.wake()
    await Promise.all([this.#looks.stop(), this.#renewals.stop()])
    await Promise.all([...this.#walks.values()].map(({ over }) => over))
  }

  /** Resolves when nothing is left to do before the clock moves. */
  async settle(): Promise<void> {
    await this.look()
    await Promise.all([...this.#walks.values()].map(({ walk, over }) => Promise.race([walk.quiet(), over])))
  }

  lease(): Lease {
    return { owner: this.owner, until: later(this.#parts.clock.now(), LEASE_US) }
  }

  /** Resolves when this server is done with the run; undefined if it does not have it. */
  overHere(id: Xid): Promise<void> | undefined {
    return this.#walks.get(id)?.over
  }

  /** Wakes whoever has the run, and whoever may take it up. */
  changed(): void {
    this.#hear()
    this.#parts.db.notify(CHANNEL, '').catch(() => {})
  }

  #hear(): void {
    this.#parts.onChange()
    for (const { walk } of this.#walks.values()) walk.wake()
    if (this.#isStarted) void this.look()
  }

  async #renew(): Promise<void> {
    if (this.#walks.size === 0) return
    const { db } = this.#parts
    await db.session('run.renew', (session) => renewRuns(session, this.lease(), [...this.#walks.keys()]))
  }

  async look(): Promise<void> {
    if (this.#parts.carriesOut) await this.#looks.now()
  }

  async #takeUp(): Promise<void> {
    const { db, clock, log, beginRounds } = this.#parts
    await beginRounds()
    const left = await db.session('run.left', (session) => runsLeft(session, clock.now()))
    for (const { id, kind } of left) {
      if (this.isStopped || this.#walks.size >= MOST_WALKS) return
      const known = this.kinds.get(kind)
      if (known === undefined || this.#walks.has(id)) continue
      const run = await db.session('run.take', (session) => takeRun(session, id, this.lease(), clock.now()))
      if (run === null) continue
      log.info({ run: id, kind }, 'run taken up')
      if ('walk' in known && run.resumed > 0) known.resumed?.(run)
      this.goOn(run)
    }
  }

  goOn(run: Run): void {
    const known = this.#walks.get(run.id)
    if (known !== undefined) {
      // Its walk may be about to end what preceded the resume.
      known.walk.wake()
      void known.over.then(() => this.#again(run.id))
      return
    }
    const kind = this.kinds.get(run.kind)
    if (kind === undefined || this.isStopped) return
    const { clock, log } = this.#parts
    const here = { owner: this.owner, signal: this.#stopped.signal, yielding: this.#yielding }
    const course = 'walk' in kind ? kind.walk(run, here) : this.#stepping(kind, run)
    const walk = new RunWalk({ clock, log, signal: here.signal }, run, course)
    const over = walk
      .go()
      .then((isLeft) => (isLeft ? this.#leave(run.id) : undefined))
      .catch((error: unknown) =>
        log.error({ err: error, run: run.id }, 'run broke off; its lease ends by itself'),
      )
      .finally(() => {
        this.#walks.delete(run.id)
        this.#parts.onChange()
      })
    this.#walks.set(run.id, { walk, over })
  }

  /** Step after step at the run's rate, with rests for others. */
  #stepping(kind: RunKind<Work>, { id, rate }: Run): Course {
    const { clock } = this.#parts
    const pace = new Pace(clock, rate)
    /** Notifications may be lost: a run that waits for its rate looks for changes too. */
    let lookAt: Instant | null = null
    const round: Course['round'] = async (isWoken) => {
      if (lookAt !== null && (isWoken || clock.now() >= lookAt)) {
        const run = await this.#readOwn(id)
        if (run === null) return 'over'
        pace.change(run.rate)
      }
      const most = Math.min(kind.batch, pace.allowed(ALL))
      lookAt = most < 1 ? later(clock.now(), LOOK_US) : null
      if (lookAt !== null) return pace.wakeAt([ALL], lookAt)
      const startedMs = performance.now()
      const taken = await this.#step(kind, id, most, pace.perSecond)
      if (taken?.next !== 'more') return 'over'
      pace.sent(ALL, taken.rows)
      pace.change(taken.rate)
      await this.#yielding.rest(performance.now() - startedMs, this.#stopped.signal, kind.rest, LONG_TURN_MS)
      return 'more'
    }
    return { round, pause: (note) => this.#pause(id, note) }
  }

  /** null unless the run continues here. */
  async #readOwn(id: Xid): Promise<Run | null> {
    const run = await this.#parts.db.session('run.read', (session) => readRun(session, id))
    return run !== null && this.#isOwn(run) ? run : null
  }

  #isOwn({ owner, state }: Run): boolean {
    return owner === this.owner && state === 'running'
  }

  async #again(id: Xid): Promise<void> {
    const run = await this.#readOwn(id).catch(() => null)
    if (run !== null) this.goOn(run)
  }

  /** In one transaction; null when the run does not continue here. */
  async #step(kind: RunKind<Work>, id: Xid, most: number, rateNow: number | null) {
    const { inWork, log } = this.#parts
    const taken = await inWork(`run.${kind.kind}`, async (work) => {
      const run = await lockRun(work.tx, id)
      if (run === null || !this.#isOwn(run)) return null
      const step = await kind.step(work, run, most)
      const { place = run.place, done = 0, skipped = 0, failed = 0, expected = run.expected, next } = step
      const moved = {
        place,
        expected,
        done: run.done + done,
        skipped: run.skipped + skipped,
        failed: run.failed + failed,
        rateNow,
      }
      const isIdle = moved.done + moved.skipped + moved.failed === 0
      if (next === 'finished' && kind.rounds !== undefined && isIdle) await removeRun(work.tx, id)
      else changeRun(work.tx, run, { ...moved, ...this.#following(next, work.now) })
      return { next, rows: done + skipped + failed, rate: run.rate }
    })
    if (taken?.next === 'finished') log.info({ run: id, kind: kind.kind }, 'run finished')
    if (taken !== null && taken.next !== 'more') this.changed()
    return taken
  }

  #following(next: Step['next'], now: Instant): RunChange {
    if (next === 'more') return { lease: this.lease() }
    const nobody = { owner: null, until: null }
    if (next === 'finished') return { state: 'done', endedAt: now, rateNow: null, lease: nobody }
    const endedAt = next.state === 'failed' ? now : null
    return { ...next, endedAt, rateNow: null, lease: nobody }
  }

  /** Unless another server has it by now. */
  async #pause(id: Xid, note: string): Promise<'over'> {
    const { inWork, pause } = this.#parts
    await inWork('run.pause', async (work) => {
      const run = await lockRun(work.tx, id)
      if (run !== null && this.#isOwn(run)) await pause(work, run, note)
    })
    return 'over'
  }

  async #leave(id: Xid): Promise<void> {
    const { db, log } = this.#parts
    await db
      .session('run.leave', (session) => leaveRun(session, id, this.owner))
      .then(() => db.notify(CHANNEL, ''))
      .catch((error: unknown) =>
        log.warn({ err: error, run: id }, 'run was not left; its lease ends by itself'),
      )
  }
}
