/** Redrives: what the rest of the office and its users ask of them. Plans are made here, commands given, and progress told. */
import { type Alarm, type Clock, later } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { type Xid, Xids } from '../core/xid.ts'
import type { Database, Session } from '../db/database.ts'
import { type Answer, answerOf, answerOnce, type OnceKey } from '../letters/idempotency.ts'
import type { SourceName } from '../letters/letter.ts'
import type { EngineNames } from '../letters/report.ts'
import type { LetterSource } from '../letters/source.ts'
import { inOffice, type OfficeWork } from '../letters/work.ts'
import { commandRedrive, type RedriveCommand } from './commands.ts'
import { queueExists } from './destinations.ts'
import type { Step } from './drive.ts'
import { listMembers, type MemberPage, type Members } from './member-list.ts'
import { exceptionCounts } from './members.ts'
import { makePlan, type PlanCompleted } from './plan.ts'
import type {
  PlanRequest,
  RedriveDetail,
  RedriveNumber,
  RedriveStanding,
  RedriveState,
  SampleLetter,
} from './redrive.ts'
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

/** What is kept for the key of a plan. */
function plannedIn({ body }: Answer): Xid {
  // Our own; earlier versions kept the whole plan, which has it as well.
  return (body as { readonly id: Xid }).id
}

/** A twin that was asked for with the same key at the same moment made the plan. */
class PlannedBefore extends Error {
  readonly id: Xid

  constructor(id: Xid) {
    super(`the plan was made as ${id}`)
    this.id = id
  }
}

async function there(session: Session, number: RedriveNumber): Promise<StoredRedrive> {
  const redrive = await readRedriveByNumber(session, number)
  if (redrive === null) throw new Error(`redrive ${number} is gone although it was written`)
  return redrive
}

/** Runs a command, or not, in its transaction. */
export type AnswerCommand<T> = (work: OfficeWork, run: () => Promise<RedriveDetail>) => Promise<T>

const plainly: AnswerCommand<RedriveDetail> = (_work, run) => run()

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

  /**
   * Makes a plan: the set of letters is frozen, nothing about them changes. `completed` runs in the transaction by which the plan
   * comes into being.
   */
  async plan(request: PlanRequest, completed?: PlanCompleted): Promise<RedriveDetail> {
    const { db, clock, engines } = this.#options
    const { selection, action, queue } = request
    if (selection.by === 'filter' && selection.filter.engine !== undefined)
      await engines.checkKnown(selection.filter.engine)
    if (action === 'move') await this.#insistOnQueue(queue)
    if (this.#plans.size >= MOST_PLANS) throw failure('redrive_planning_busy', { limit: MOST_PLANS })
    const plan = makePlan(
      { db, clock, repairer: this.#planRepairer, signal: this.#stopped.signal },
      this.#xids.next(),
      request,
      completed,
    )
    this.#plans.add(plan)
    try {
      return await this.#detail(await this.#byNumber(await plan))
    } finally {
      this.#plans.delete(plan)
    }
  }

  /** The same for a key: whoever asks again with it is shown the plan that there is, also when the answer was lost in a crash. */
  async planOnce(request: PlanRequest, once: OnceKey | null): Promise<RedriveDetail> {
    const { db, clock } = this.#options
    if (once === null) return this.plan(request)
    const known = await db.session('idempotency.read', (session) => answerOf(session, once, clock.now()))
    if (known !== null) return this.read(plannedIn(known))
    try {
      return await this.plan(request, async (work, id) => {
        const kept = await answerOnce(work, once, async () => ({ status: 201, body: { id } }))
        const planned = plannedIn(kept)
        if (planned !== id) throw new PlannedBefore(planned)
      })
    } catch (error) {
      if (error instanceof PlannedBefore) return this.read(error.id)
      throw error
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
    return this.steer(id, { act: 'start', actor }, plainly)
  }

  /** Halts a redrive: when this returns, nothing more is sent until it is resumed. */
  pause(id: Xid, actor: string, reason: string | null): Promise<RedriveDetail> {
    return this.steer(id, { act: 'pause', actor, reason }, plainly)
  }

  /** Goes on with a redrive that is paused. */
  resume(id: Xid, actor: string): Promise<RedriveDetail> {
    return this.steer(id, { act: 'resume', actor }, plainly)
  }

  /** Ends a redrive, or drops a plan: when this returns, nothing more is sent. */
  cancel(id: Xid, actor: string, reason: string | null): Promise<RedriveDetail> {
    return this.steer(id, { act: 'cancel', actor, reason }, plainly)
  }

  /** Sends at another rate from now on; null: as fast as it goes. */
  setRate(id: Xid, rate: number | null, actor: string): Promise<RedriveDetail> {
    return this.steer(id, { act: 'rate', actor, rate }, plainly)
  }

  /** Gives a command in one transaction, in which `answer` runs it, or gives what it was answered before. */
  async steer<T>(id: Xid, command: RedriveCommand, answer: AnswerCommand<T>): Promise<T> {
    const { db, clock } = this.#options
    this.#stopped.signal.throwIfAborted()
    // Its letters are read and repaired, which is no part of a transaction; what a plan sends does not change.
    const sample = command.act === 'rate' ? await this.#sampleOf(id) : []
    return inOffice(db, clock, `redrive.${command.act}`, (work) =>
      answer(work, async () => {
        const { number } = await commandRedrive(work, id, command, this.#owner)
        const redrive = await there(work.tx, number)
        work.afterCommit(() => this.#follow(redrive, command))
        const facts = await this.#factsOf(work.tx, redrive)
        return { ...facts, sample: redrive.state === 'planned' ? sample : [] }
      }),
    )
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

  /** What this server does about a command that is durable now. */
  #follow(redrive: StoredRedrive, { act }: RedriveCommand): void {
    if (redrive.owner !== null && redrive.owner === this.#owner) this.#runner.begin(redrive)
    this.#runner.changed()
    // A plan that was dropped never was under way.
    if (act === 'cancel' && redrive.startedAt !== null) this.#runner.tellEnded(redrive.state)
  }

  async #byId(id: Xid): Promise<StoredRedrive> {
    const redrive = await this.#options.db.session('redrive.read', (session) => readRedrive(session, id))
    if (redrive === null) throw failure('redrive_unknown', { id })
    return redrive
  }

  async #byNumber(number: RedriveNumber): Promise<StoredRedrive> {
    return this.#options.db.session('redrive.read', (session) => there(session, number))
  }

  async #detail(redrive: StoredRedrive): Promise<RedriveDetail> {
    const { db } = this.#options
    const facts = await db.session('redrive.detail', (session) => this.#factsOf(session, redrive))
    return { ...facts, sample: await this.#sample(redrive) }
  }

  async #factsOf(session: Session, redrive: StoredRedrive): Promise<Omit<RedriveDetail, 'sample'>> {
    // Of one moment: what the destinations say adds up to the counts.
    const { lanes, counts } = await readProgress(session, redrive)
    const exceptions = await exceptionCounts(session, redrive.number)
    return { ...standingOf(redrive, counts), destinations: destinationsOf(lanes), exceptions }
  }

  async #sampleOf(id: Xid): Promise<readonly SampleLetter[]> {
    return this.#sample(await this.#byId(id))
  }

  async #sample(redrive: StoredRedrive): Promise<readonly SampleLetter[]> {
    const { db, sources } = this.#options
    if (redrive.state !== 'planned') return []
    return sampleOf({ db, sources, repairer: this.#planRepairer }, redrive)
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
