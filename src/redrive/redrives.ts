/** Redrives as the office and its users see them: plans, commands, progress. */
import type { Clock } from '../core/clock.ts'
import { failure, refuse } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { type Xid, Xids } from '../core/xid.ts'
import type { SourceName } from '../letters/kinds.ts'
import type { EngineNames } from '../letters/reports/report.ts'
import type { LetterSource } from '../letters/source.ts'
import { inOffice, type OfficeRuns, type OfficeWork } from '../letters/work.ts'
import type { Database, Session } from '../store/database.ts'
import { type Answer, answerOnce, dropKey, keptAnswer, type OnceKey } from '../store/idempotency.ts'
import { commandRedrive, type RedriveCommand } from './commands.ts'
import { Drive, type DriveParts, type Step } from './driving/drive.ts'
import { queueExists } from './planning/destinations.ts'
import { Planning } from './planning/plan.ts'
import { sampleOf } from './planning/sample.ts'
import {
  PLAN_RUN,
  type PlanRequest,
  REDRIVE_RUN,
  type RedriveDetail,
  type RedriveStanding,
  type RedriveState,
  type SampleLetter,
} from './redrive.ts'
import { Repairer } from './repair/repairer.ts'
import { destinationsOf, readProgress, readSummaries, summaryOf } from './rows/counts.ts'
import { listMembers, type MemberPage, type Members } from './rows/member-list.ts'
import { exceptionCounts } from './rows/members.ts'
import { redriveRemoval } from './rows/removal.ts'
import { insertRedrive, newestRedrives, openRedrives, readRedrive, type StoredRedrive } from './rows/rows.ts'

export interface RedrivesOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly runs: OfficeRuns
  readonly sources: ReadonlyMap<SourceName, LetterSource>
  readonly engines: EngineNames
  readonly retentionDays: number
}

export interface RedriveListener {
  step(step: Step): void
  ended(state: RedriveState): void
  /** This server goes on with a redrive that another server, or an earlier run, left. */
  resumed(): void
}

export interface RedrivePage {
  readonly limit: number
  /** Only redrives older than this one. */
  readonly before: Xid | null
  /** null: all that were started. */
  readonly states: readonly RedriveState[] | null
}

function plannedIn({ body }: Answer): Xid {
  // Written by us; earlier versions kept the whole plan, which has an id too.
  return (body as { readonly id: Xid }).id
}

/** Runs a command, or not, in its transaction. */
type AnswerCommand<T> = (work: OfficeWork, run: () => Promise<RedriveDetail>) => Promise<T>

const plainly: AnswerCommand<RedriveDetail> = (_work, run) => run()

/** Plans made at once on a server. */
const MOST_PLANS = 4
/** How long a request waits for its plan. */
const PLAN_WAIT_US = 30_000_000n

const STARTED: readonly RedriveState[] = ['canary', 'running', 'paused', 'done', 'stopped', 'cancelled']

export class Redrives {
  readonly #options: RedrivesOptions
  readonly #xids: Xids
  /** Apart from the other: letters being sent wait in their transactions, and never for a plan. */
  readonly #planRepairer: Repairer
  readonly #repairer: Repairer
  readonly #stopped = new AbortController()
  readonly #listeners = new Set<Partial<RedriveListener>>()
  /** Plans awaited here, and why there will be none. */
  readonly #awaited = new Map<Xid, { waiting: number; refusal?: unknown }>()
  #plans = 0

  constructor(options: RedrivesOptions) {
    const { db, clock, log, sources, runs } = options
    this.#options = options
    this.#xids = new Xids(clock)
    this.#planRepairer = new Repairer(log)
    this.#repairer = new Repairer(log)
    const listening = (): Pick<DriveParts, 'onStep' | 'onEnded'> => ({
      onStep: (step) => this.#notify((listener) => listener.step?.(step)),
      onEnded: (state) => this.#notify((listener) => listener.ended?.(state)),
    })
    const command = (work: OfficeWork, id: Xid, asked: RedriveCommand) => this.#command(work, id, asked)
    runs.define({
      kind: REDRIVE_RUN,
      walk: (run, here) =>
        new Drive({ db, clock, log, sources, repairer: this.#repairer, ...here, ...listening() }, run),
      command,
      sourcesOf: ({ id }: { readonly id: Xid }) => this.sourcesOf(id),
      resumed: () => this.#notify((listener) => listener.resumed?.()),
    })
    const refused = (id: Xid, error: unknown): boolean => this.#refuse(id, error)
    runs.define({
      kind: PLAN_RUN,
      walk: (run, here) =>
        new Planning({ db, clock, log, sources, repairer: this.#planRepairer, refused, ...here }, run),
      command,
    })
    runs.define(redriveRemoval(options.retentionDays))
  }

  /** Closes the repairers; the runs have stopped before. */
  async stop(): Promise<void> {
    this.#stopped.abort(failure('service_stopping'))
    await Promise.all([this.#planRepairer.close(), this.#repairer.close()])
  }

  /**
   * Makes a plan: freezes the set of letters and changes nothing. One that outlives the request is answered as it stands and goes on. A
   * repeated key shows the plan that exists, also when the first answer was lost.
   */
  async plan(request: PlanRequest, once: OnceKey | null = null): Promise<RedriveDetail> {
    const { db, clock, engines } = this.#options
    const { selection, action, queue } = request
    const isKnown = async (session: Session): Promise<Answer | null> =>
      once === null ? null : keptAnswer(session, once, clock.now())
    const known = await db.session('idempotency.read', isKnown)
    if (known !== null) return this.#planned(plannedIn(known), once)
    if (selection.by === 'filter' && selection.filter.engine !== undefined)
      await engines.checkKnown(selection.filter.engine)
    if (action === 'move') await this.#insistOnQueue(queue)
    if (this.#plans >= MOST_PLANS) throw failure('redrive_planning_busy', { limit: MOST_PLANS })
    this.#stopped.signal.throwIfAborted()
    this.#plans++
    try {
      const id = this.#xids.next()
      return await this.#planned(id, once, () => this.#beginPlan(id, request, once))
    } finally {
      this.#plans--
    }
  }

  /** Begins a plan on this server; gives its id, or that of the first plan with this key. */
  async #beginPlan(id: Xid, request: PlanRequest, once: OnceKey | null): Promise<Xid> {
    const { db, clock, runs } = this.#options
    const { action, actor } = request
    const begun = await inOffice(db, clock, 'redrive.begin', (work) =>
      answerOnce(work, once, async () => {
        await insertRedrive(work.tx, id, request, work.now)
        await runs.begin(work, {
          ...{ id, kind: PLAN_RUN, about: `plan to ${action} letters`, subject: {}, place: null, actor },
          isHere: true,
        })
        return { status: 201, body: { id } }
      }),
    )
    return plannedIn(begun)
  }

  /** The plan once it is made, or as it stands after the wait. `begin` says which plan it is. */
  async #planned(id: Xid, once: OnceKey | null, begin = async () => id): Promise<RedriveDetail> {
    const awaited = this.#awaited.get(id) ?? { waiting: 0 }
    this.#awaited.set(id, awaited)
    awaited.waiting++
    try {
      const begun = await begin()
      if (begun !== id) return await this.#planned(begun, once)
      await this.#options.runs.over(id, PLAN_WAIT_US)
    } finally {
      if (--awaited.waiting === 0) this.#awaited.delete(id)
    }
    if (!('refusal' in awaited)) return this.read(id)
    if (once !== null) await this.#options.db.transaction('idempotency.drop', (tx) => dropKey(tx, once))
    throw awaited.refusal
  }

  /** Reports why there is no plan to whoever waits for it; false when nobody does. */
  #refuse(id: Xid, error: unknown): boolean {
    const awaited = this.#awaited.get(id)
    if (awaited === undefined) return false
    awaited.refusal =
      error instanceof Error && error.name === 'AbortError' ? failure('service_stopping') : error
    return true
  }

  async read(id: Xid): Promise<RedriveDetail> {
    return this.#detail(await this.#byId(id))
  }

  async sourcesOf(id: Xid): Promise<readonly string[]> {
    return (await this.read(id)).destinations.map(({ source }) => source)
  }

  list({ limit, before, states }: RedrivePage): Promise<readonly RedriveStanding[]> {
    return this.#options.db.session('redrive.list', async (session) => {
      const found = await newestRedrives(session, states ?? STARTED, before, limit)
      return readSummaries(session, found)
    })
  }

  active(): Promise<readonly RedriveStanding[]> {
    return this.#options.db.session('redrive.active', async (session) =>
      readSummaries(session, await openRedrives(session)),
    )
  }

  async members(id: Xid, page: MemberPage): Promise<Members> {
    return listMembers(this.#options.db, await this.#byId(id), page)
  }

  /** Starts a plan. It is durable on return: this server or another one drives it. */
  start(id: Xid, actor: string): Promise<RedriveDetail> {
    return this.steer(id, { act: 'start', actor }, plainly)
  }

  /** Halts a redrive: on return nothing more is sent until it is resumed. */
  pause(id: Xid, actor: string, reason: string | null): Promise<RedriveDetail> {
    return this.steer(id, { act: 'pause', actor, reason }, plainly)
  }

  resume(id: Xid, actor: string): Promise<RedriveDetail> {
    return this.steer(id, { act: 'resume', actor }, plainly)
  }

  /** Ends a redrive or drops a plan: on return nothing more is sent. */
  cancel(id: Xid, actor: string, reason: string | null): Promise<RedriveDetail> {
    return this.steer(id, { act: 'cancel', actor, reason }, plainly)
  }

  /** Changes the rate; null: as fast as it goes. */
  setRate(id: Xid, rate: number | null, actor: string): Promise<RedriveDetail> {
    return this.steer(id, { act: 'rate', actor, rate }, plainly)
  }

  /** Gives a command in one transaction, in which `answer` runs it or repeats an earlier answer. */
  async steer<T>(id: Xid, command: RedriveCommand, answer: AnswerCommand<T>): Promise<T> {
    const { db, clock } = this.#options
    this.#stopped.signal.throwIfAborted()
    // Before the transaction: its letters are read and repaired, and a plan does not change.
    const sample = command.act === 'rate' ? await this.#sample(await this.#byId(id)) : []
    return inOffice(db, clock, `redrive.${command.act}`, (work) =>
      answer(work, async () => {
        const { redrive } = await this.#command(work, id, command)
        const facts = await this.#factsOf(work.tx, redrive)
        return { ...facts, sample: redrive.state === 'planned' ? sample : [] }
      }),
    )
  }

  async #command(work: OfficeWork, id: Xid, command: RedriveCommand) {
    const changed = await commandRedrive(work, this.#options.runs, id, command)
    // A dropped plan was never under way.
    if (command.act === 'cancel' && changed.redrive.startedAt !== null)
      work.afterCommit(() => this.#notify((listener) => listener.ended?.('cancelled')))
    return changed
  }

  /** Notifies `listener` of batches, ended and resumed redrives on this server. */
  listen(listener: Partial<RedriveListener>): void {
    this.#listeners.add(listener)
  }

  /** Test control: resolves when nothing is left to do before the clock moves. */
  settle(): Promise<void> {
    return this.#options.runs.settle()
  }

  #notify(notify: (listener: Partial<RedriveListener>) => void): void {
    for (const listener of this.#listeners) notify(listener)
  }

  async #byId(id: Xid): Promise<StoredRedrive> {
    const redrive = await this.#options.db.session('redrive.read', (session) => readRedrive(session, id))
    if (redrive === null) throw failure('redrive_unknown', { id })
    return redrive
  }

  async #detail(redrive: StoredRedrive): Promise<RedriveDetail> {
    const { db } = this.#options
    const facts = await db.session('redrive.detail', (session) => this.#factsOf(session, redrive))
    return { ...facts, sample: await this.#sample(redrive) }
  }

  async #factsOf(session: Session, redrive: StoredRedrive): Promise<Omit<RedriveDetail, 'sample'>> {
    // Read at one moment, so that destinations add up to the counts.
    const { lanes, counts } = await readProgress(session, redrive)
    const exceptions = await exceptionCounts(session, redrive.number)
    return { ...summaryOf(redrive, counts), destinations: destinationsOf(lanes), exceptions }
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
    throw refuse('queue', reason)
  }
}
