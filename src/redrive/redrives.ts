/** Redrives: what the rest of the office and its users ask of them. Plans are made here, commands given, and progress told. */
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
  /** How long redrives that ended are kept. */
  readonly retentionDays: number
}

/** Who wants to hear of what this server does. */
export interface RedriveListener {
  step(step: Step): void
  ended(state: RedriveState): void
  /** It goes on with what another, or an earlier run of it, left. */
  resumed(): void
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

/** Runs a command, or not, in its transaction. */
type AnswerCommand<T> = (work: OfficeWork, run: () => Promise<RedriveDetail>) => Promise<T>

const plainly: AnswerCommand<RedriveDetail> = (_work, run) => run()

/** Plans that are made at once on a server. */
const MOST_PLANS = 4
/** Whoever asks for a plan waits for it so long; then it is looked at like everything else that takes longer than a request. */
const PLAN_WAIT_US = 30_000_000n

const STARTED: readonly RedriveState[] = ['canary', 'running', 'paused', 'done', 'stopped', 'cancelled']

export class Redrives {
  readonly #options: RedrivesOptions
  readonly #xids: Xids
  /** Of plans, apart from that of letters that are sent: those wait in their transactions, and never for a plan. */
  readonly #planRepairer: Repairer
  readonly #repairer: Repairer
  readonly #stopped = new AbortController()
  readonly #listeners = new Set<Partial<RedriveListener>>()
  /** Plans that somebody waits for here, and why there will be none. */
  readonly #awaited = new Map<Xid, { waiting: number; refusal?: unknown }>()
  #plans = 0

  constructor(options: RedrivesOptions) {
    const { db, clock, log, sources, runs } = options
    this.#options = options
    this.#xids = new Xids(clock)
    this.#planRepairer = new Repairer(log)
    this.#repairer = new Repairer(log)
    const tell = (): Pick<DriveParts, 'onStep' | 'onEnded'> => ({
      onStep: (step) => this.#tell(({ step: hear }) => hear?.(step)),
      onEnded: (state) => this.#tell(({ ended }) => ended?.(state)),
    })
    const command = (work: OfficeWork, id: Xid, asked: RedriveCommand) => this.#command(work, id, asked)
    runs.define({
      kind: REDRIVE_RUN,
      walk: (run, here) =>
        new Drive({ db, clock, log, sources, repairer: this.#repairer, ...here, ...tell() }, run),
      command,
      sourcesOf: ({ id }: { readonly id: Xid }) => this.sourcesOf(id),
      resumed: () => this.#tell(({ resumed }) => resumed?.()),
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

  /** Ends what is no run; those have ended before. */
  async stop(): Promise<void> {
    this.#stopped.abort(failure('service_stopping'))
    await Promise.all([this.#planRepairer.close(), this.#repairer.close()])
  }

  /**
   * Makes a plan: the set of letters is frozen, nothing about them changes. One that takes longer than a request is answered as it
   * stands, and goes on. For a key, whoever asks again with it is shown the plan that there is, also when the answer was lost.
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

  /** Writes down what is asked for, and begins to plan it here; gives the id, of the one before for a known key. */
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

  /** The plan, once it is made; as it stands after so long. `begin` gives which plan it is. */
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

  /** Whoever waits for a plan is told why there is none; false when nobody does. */
  #refuse(id: Xid, error: unknown): boolean {
    const awaited = this.#awaited.get(id)
    if (awaited === undefined) return false
    awaited.refusal =
      error instanceof Error && error.name === 'AbortError' ? failure('service_stopping') : error
    return true
  }

  /** A redrive with everything that is on file about it. */
  async read(id: Xid): Promise<RedriveDetail> {
    return this.#detail(await this.#byId(id))
  }

  /** The sources that its letters go back to. */
  async sourcesOf(id: Xid): Promise<readonly string[]> {
    return (await this.read(id)).destinations.map(({ source }) => source)
  }

  /** Redrives, the newest first. */
  list({ limit, before, states }: RedrivePage): Promise<readonly RedriveStanding[]> {
    return this.#options.db.session('redrive.list', async (session) => {
      const found = await newestRedrives(session, states ?? STARTED, before, limit)
      return readSummaries(session, found)
    })
  }

  /** Redrives that are under way or paused. */
  active(): Promise<readonly RedriveStanding[]> {
    return this.#options.db.session('redrive.active', async (session) =>
      readSummaries(session, await openRedrives(session)),
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
    // A plan that was dropped never was under way.
    if (command.act === 'cancel' && changed.redrive.startedAt !== null)
      work.afterCommit(() => this.#tell(({ ended }) => ended?.('cancelled')))
    return changed
  }

  /** Tells `listener` of what it has a word for: what this server did in every batch, redrives that ended on it, and how, and those that it took up. */
  listen(listener: Partial<RedriveListener>): void {
    this.#listeners.add(listener)
  }

  /** Test control: resolves when nothing is left to do before the clock moves. */
  settle(): Promise<void> {
    return this.#options.runs.settle()
  }

  #tell(tell: (listener: Partial<RedriveListener>) => void): void {
    for (const listener of this.#listeners) tell(listener)
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
    // Of one moment: what the destinations say adds up to the counts.
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
