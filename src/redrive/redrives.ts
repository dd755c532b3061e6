/** Redrives: what the rest of the office and its users ask of them. Plans are made here, commands given, and progress told. */
import { type Alarm, type Clock, later } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { type Xid, Xids } from '../core/xid.ts'
import type { Database } from '../db/database.ts'
import type { LetterSource, SourceName } from '../letters/letter.ts'
import type { EngineNames } from '../letters/report.ts'
import { inOffice, type OfficeWork } from '../letters/work.ts'
import { cancelRedrive, pauseRedrive, rateRedrive, resumeRedrive, startRedrive } from './commands.ts'
import { queueExists } from './destinations.ts'
import type { Step } from './drive.ts'
import { listMembers, type MemberPage, type Members } from './member-list.ts'
import { exceptionCounts } from './members.ts'
import { makePlan } from './plan.ts'
import type { PlanRequest, RedriveDetail, RedriveNumber, RedriveStanding, RedriveState } from './redrive.ts'
import { forgetRedrive, oldRedrives } from './removal.ts'
import { Repairer } from './repair/repairer.ts'
import { newestRedrives, openRedrives, readRedrive, readRedriveByNumber, type StoredRedrive } from './rows.ts'
import { RedriveRunner } from './runner.ts'
import { sampleOf } from './sample.ts'
import { destinationsOf, readProgress, readStandings, standingOf } from './standing.ts'

export interface RedrivesOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly sources: ReadonlyMap<SourceName, LetterSource>
  readonly engines: EngineNames
  /** How long redrives that ended are kept. */
  readonly retentionDays: number
  /** False: others do what is started here, and what they leave is not taken up. */
  readonly carriesOut: boolean
}

/** Which redrives a list shows. */
export interface RedrivePage {
  readonly limit: number
  /** Older than this one; null: from the newest on. */
  readonly before: Xid | null
  /** null: all that were started. */
  readonly states: readonly RedriveState[] | null
}

/** Plans that are made at once on a server. */
const MOST_PLANS = 4
const FORGET_EVERY_US = 60_000_000n
const HOUR_US = 3_600_000_000n
const DAY_US = 24n * HOUR_US

const STARTED: readonly RedriveState[] = ['canary', 'running', 'paused', 'done', 'stopped', 'cancelled']

export class Redrives {
  readonly #options: RedrivesOptions
  readonly #xids: Xids
  /** Of plans, apart from that of letters that are sent: those wait in their transactions, and never for a plan. */
  readonly #planRepairer: Repairer
  readonly #repairer: Repairer
  readonly #runner: RedriveRunner
  readonly #stopped = new AbortController()
  readonly #plans = new Set<Promise<RedriveNumber>>()
  #alarm: Alarm | undefined
  #forgetting: Promise<void> | undefined

  constructor(options: RedrivesOptions) {
    const { db, clock, log, sources } = options
    this.#options = options
    this.#xids = new Xids(clock)
    this.#planRepairer = new Repairer(log)
    this.#repairer = new Repairer(log)
    this.#runner = new RedriveRunner({ db, clock, log, sources, repairer: this.#repairer })
  }

  /** Begins to go on with redrives that nobody is at. */
  begin(): void {
    if (!this.#options.carriesOut) return
    this.#runner.start()
    this.#forgetLater()
  }

  /** Ends after the batches at hand; what is left is another server's, or this one's at its next start. */
  async stop(): Promise<void> {
    this.#stopped.abort(failure('service_stopping'))
    this.#alarm?.cancel()
    await Promise.allSettled([...this.#plans, this.#forgetting])
    await this.#runner.stop()
    await Promise.all([this.#planRepairer.close(), this.#repairer.close()])
  }

  /** Makes a plan: the set of letters is frozen, nothing about them changes. */
  async plan(request: PlanRequest): Promise<RedriveDetail> {
    const { db, clock, engines } = this.#options
    const { selection, action, queue } = request
    if (selection.by === 'filter' && selection.filter.engine !== undefined)
      engines.check(selection.filter.engine)
    if (action === 'move') await this.#insistOnQueue(queue)
    if (this.#plans.size >= MOST_PLANS) throw failure('redrive_planning_busy', { limit: MOST_PLANS })
    const plan = makePlan(
      { db, clock, repairer: this.#planRepairer, signal: this.#stopped.signal },
      this.#xids.next(),
      request,
    )
    this.#plans.add(plan)
    try {
      return await this.#detail(await this.#byNumber(await plan))
    } finally {
      this.#plans.delete(plan)
    }
  }

  /** A redrive with everything that is on file about it. */
  async read(id: Xid): Promise<RedriveDetail> {
    return this.#detail(await this.#byId(id))
  }

  /** Redrives, the newest first. */
  list({ limit, before, states }: RedrivePage): Promise<readonly RedriveStanding[]> {
    return this.#options.db.session('redrive.list', async (session) => {
      const found = await newestRedrives(session, states ?? STARTED, before, limit)
      return readStandings(session, found)
    })
  }

  /** Redrives that are under way or paused. */
  active(): Promise<readonly RedriveStanding[]> {
    return this.#options.db.session('redrive.active', async (session) =>
      readStandings(session, await openRedrives(session)),
    )
  }

  /** The letters of a redrive, with what became of each. */
  async members(id: Xid, page: MemberPage): Promise<Members> {
    return listMembers(this.#options.db, await this.#byId(id), page)
  }

  /** Begins a plan. When this returns it is durable: this server goes on with it, or another one does. */
  start(id: Xid, actor: string): Promise<RedriveDetail> {
    return this.#command('redrive.start', (work) => startRedrive(work, id, { actor, owner: this.#owner }))
  }

  /** Halts a redrive: when this returns, nothing more is sent until it is resumed. */
  pause(id: Xid, actor: string, reason: string | null): Promise<RedriveDetail> {
    return this.#command('redrive.pause', (work) => pauseRedrive(work, id, { actor, reason }))
  }

  /** Goes on with a redrive that is paused. */
  resume(id: Xid, actor: string): Promise<RedriveDetail> {
    return this.#command('redrive.resume', (work) => resumeRedrive(work, id, { actor, owner: this.#owner }))
  }

  /** Ends a redrive, or drops a plan: when this returns, nothing more is sent. */
  async cancel(id: Xid, actor: string, reason: string | null): Promise<RedriveDetail> {
    const cancelled = await this.#command('redrive.cancel', (work) =>
      cancelRedrive(work, id, { actor, reason }),
    )
    // A plan that was dropped never was under way.
    if (cancelled.startedAt !== null) this.#runner.tellEnded(cancelled.state)
    return cancelled
  }

  /** Sends at another rate from now on; null: as fast as it goes. */
  setRate(id: Xid, rate: number | null, actor: string): Promise<RedriveDetail> {
    return this.#command('redrive.rate', (work) => rateRedrive(work, id, { actor, rate }))
  }

  /** Tells `listener` what this server did in every batch. */
  onStep(listener: (step: Step) => void): void {
    this.#runner.listen({ step: listener })
  }

  /** Tells `listener` of redrives that ended on this server, and how. */
  onEnded(listener: (state: RedriveState) => void): void {
    this.#runner.listen({ ended: listener })
  }

  /** Tells `listener` whenever this server goes on with what another, or an earlier run of it, left. */
  onResumed(listener: () => void): void {
    this.#runner.listen({ resumed: listener })
  }

  /** Test control: resolves when nothing is left to do before the clock moves. */
  async settle(): Promise<void> {
    await this.#forgetting
    await this.#runner.settle()
  }

  /** Who is at what is started here; null: whoever takes it up. */
  get #owner(): string | null {
    return this.#options.carriesOut ? this.#runner.owner : null
  }

  async #command(verb: string, act: (work: OfficeWork) => Promise<StoredRedrive>): Promise<RedriveDetail> {
    const { db, clock } = this.#options
    this.#stopped.signal.throwIfAborted()
    const redrive = await inOffice(db, clock, verb, act)
    if (redrive.owner !== null && redrive.owner === this.#owner) this.#runner.begin(redrive)
    this.#runner.changed()
    return this.#detail(await this.#byNumber(redrive.number))
  }

  async #byId(id: Xid): Promise<StoredRedrive> {
    const redrive = await this.#options.db.session('redrive.read', (session) => readRedrive(session, id))
    if (redrive === null) throw failure('redrive_unknown', { id })
    return redrive
  }

  async #byNumber(number: RedriveNumber): Promise<StoredRedrive> {
    const { db } = this.#options
    const redrive = await db.session('redrive.read', (session) => readRedriveByNumber(session, number))
    if (redrive === null) throw new Error(`redrive ${number} is gone although it was written`)
    return redrive
  }

  async #detail(redrive: StoredRedrive): Promise<RedriveDetail> {
    const { db, sources } = this.#options
    const facts = await db.session('redrive.detail', async (session) => {
      // Of one moment: what the destinations say adds up to the counts.
      const { lanes, counts } = await readProgress(session, redrive)
      const exceptions = await exceptionCounts(session, redrive.number)
      return { ...standingOf(redrive, counts), destinations: destinationsOf(lanes), exceptions }
    })
    const parts = { db, sources, repairer: this.#planRepairer }
    return { ...facts, sample: redrive.state === 'planned' ? await sampleOf(parts, redrive) : [] }
  }

  async #insistOnQueue(queue: string | null): Promise<void> {
    const { db } = this.#options
    const exists =
      queue !== null && (await db.session('redrive.queue', (session) => queueExists(session, queue)))
    if (exists) return
    const reason =
      queue === null ? 'a move needs the queue to move to' : `there is no queue '${queue}', create it first`
    throw failure('parameter_invalid', { parameter: 'queue', reason })
  }

  #forgetLater(): void {
    const { clock } = this.#options
    this.#alarm = clock.alarm(later(clock.now(), FORGET_EVERY_US), () => {
      this.#forgetting = this.#forget().finally(() => {
        if (!this.#stopped.signal.aborted) this.#forgetLater()
      })
    })
  }

  /** Plans that were never started, an hour after they could be; and what ended long ago. Never rejects. */
  async #forget(): Promise<void> {
    const { db, clock, log, retentionDays } = this.#options
    try {
      const now = clock.now()
      for (const number of await oldRedrives(db, now - HOUR_US, now - BigInt(retentionDays) * DAY_US)) {
        if (this.#stopped.signal.aborted) return
        await forgetRedrive(db, number)
      }
    } catch (error) {
      log.warn({ err: error }, 'old redrives were not removed; the next round tries again')
    }
  }
}
