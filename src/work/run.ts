/**
 * Runs: work over many rows, in steps that each are one transaction. A run is a row that says how far it is and which server is at it.
 *
 *   begin ──► running ──► done | failed
 *               │ ▲ └────► cancelled
 *               ▼ │
 *              paused
 *
 * A server renews the leases of its runs every second and looks for some that nobody is at, so a run of a server that died goes on
 * elsewhere within five seconds. A step holds the row of its run, checks behind the lock that the run is still this server's, and
 * moves place and counts with what it does: after a crash all of it has happened or nothing.
 */
import { type Alarm, type Clock, type Instant, later } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { firstXidOf, type Xid, Xids } from '../core/xid.ts'
import type { Database, Transaction } from '../db/database.ts'
import { Courtesy } from './courtesy.ts'
import {
  changeRun,
  insertRun,
  type Lease,
  leaveRun,
  lockRun,
  type NewRun,
  openRuns,
  type Run,
  type RunChange,
  type RunPage,
  type RunState,
  readOpenRun,
  readRun,
  readRuns,
  removeEndedRuns,
  removeRun,
  renewRuns,
  runsLeft,
  takeRun,
} from './run-rows.ts'
import { RunWalk, type StepTaken } from './run-walk.ts'

export { RUN_STATES, type Run, type RunPage, type RunState } from './run-rows.ts'

/** A transaction as steps need it; `now` is when it began. */
export interface RunWork {
  readonly tx: Transaction
  readonly now: Instant
  /** Runs once the transaction is durable. */
  afterCommit(effect: () => void): void
}

/** What a step did, and what follows. */
export interface Step<Place = unknown> {
  /** Where the next step goes on; left out: where this one began. */
  readonly place?: Place
  readonly done?: number
  readonly skipped?: number
  readonly failed?: number
  /** Another number of rows than was expected so far. */
  readonly expected?: number | null
  /** `until`: there is nothing to do before, and whoever looks then goes on. */
  readonly next:
    | 'more'
    | 'finished'
    | { readonly until: Instant }
    | { readonly state: 'paused' | 'failed'; readonly note: string }
}

/** A kind of run. Every server defines the same kinds, and any of them goes on with a run of these. */
export interface RunKind<Work extends RunWork, Subject = unknown, Place = unknown> {
  readonly kind: string
  /** Rows of one step at most: a few milliseconds, also on SQLite, where everybody waits for it. */
  readonly batch: number
  /** Beside live traffic a step is followed by a rest of so many times its length. Less where somebody waits for the end. */
  readonly rest?: number
  /** Done again and again, as a whole, by one server at a time. */
  readonly rounds?: Rounds
  /** Does the next `most` rows, in the transaction that writes how far the run is then. */
  step(work: Work, run: Run<Subject, Place>, most: number): Promise<Step<Place>>
}

/** One run under way on this server. */
export interface Walk {
  /** Goes on until the run is over, paused, another server's, or this one stops; true when it is left to others then. */
  go(): Promise<boolean>
  /** Somebody changed something about the run, or it has to stop: it looks at once. */
  wake(): void
  /** Resolves when there is nothing to do before the clock moves, and when it is over. */
  quiet(): Promise<void>
}

/**
 * A kind whose runs are more than one step after the other. Its transactions are its own: each checks that the run is still its
 * server's. So is what people do to it, and its rows stay until it removes them.
 */
export interface WalkedKind<Work extends RunWork> {
  readonly kind: string
  walk(run: Run, at: { readonly owner: string; readonly signal: AbortSignal }): Walk
  /** What is done to the run, in its own words. */
  command(work: Work, id: Xid, command: RunCommand): Promise<{ readonly run: Run | null }>
  /** A run was taken up that another server, or an earlier one, had begun. */
  resumed?(run: Run): void
}

/** How a kind of run comes round. A round that did nothing leaves no row behind. */
export interface Rounds {
  readonly about: string
  /** When a server begins one by itself: so long after its start, and so long after that; left out: when it is asked for. */
  readonly firstUs?: bigint
  readonly everyUs?: bigint
}

export interface RunsOptions<Work extends RunWork> {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  /** Runs `act` in one transaction. */
  readonly inWork: <T>(verb: string, act: (work: Work) => Promise<T>) => Promise<T>
  /** Files what was done to a run; `notes` says why. */
  readonly record?: (work: Work, run: Run, act: RunAct) => Promise<void>
  /** False: runs that are begun here are left to other servers, and none is taken up. Default true. */
  readonly carriesOut?: boolean
}

/** What is asked for. */
export interface RunRequest<Subject = unknown, Place = unknown> {
  readonly kind: string
  readonly about: string
  readonly subject: Subject
  readonly place: Place
  readonly actor: string
  readonly expected?: number | null
  readonly rate?: number | null
  /** Given, and one of this name is open: that is the run. */
  readonly name?: string
  /** Left out: at once. */
  readonly dueAt?: Instant
  /** Left out: a new one. */
  readonly id?: Xid
  /** It is begun here, also where runs are left to others. */
  readonly isHere?: boolean
}

/** What an operator wants of a run. */
export type RunCommand =
  | { readonly act: 'resume'; readonly actor: string }
  | { readonly act: 'pause' | 'cancel'; readonly actor: string; readonly reason: string | null }
  | { readonly act: 'rate'; readonly actor: string; readonly rate: number | null }

export interface RunAct {
  readonly act: RunCommand['act']
  readonly actor: string
  readonly notes: string | null
}

/** A server that does not come back has lost a run after so long: with a look every second, another is at it within five. */
export const LEASE_US = 3_000_000n
/** Who waits for the end of a run looks anew after so long; a clock may jump. */
const LONG_US = 86_400_000_000n
const LOOK_US = 1_000_000n
/** Runs that one server is at; what is more waits, or is another's. */
const MOST_WALKS = 20
/** How long runs that ended are remembered. */
const KEPT_US = 30n * 86_400_000_000n
/** How long a caller waits for a round. */
const ROUND_US = 600_000_000n
const CHANNEL = 'bartleby_runs'
/** Who decides when nobody asked. */
const OFFICE_ACTOR = 'office'

export class Runs<Work extends RunWork> {
  /** Unique among all running servers. */
  readonly owner = crypto.randomUUID()
  readonly #options: RunsOptions<Work>
  readonly #carriesOut: boolean
  readonly #xids: Xids
  readonly #courtesy: Courtesy
  readonly #kinds = new Map<string, RunKind<Work> | WalkedKind<Work>>()
  readonly #walks = new Map<Xid, { readonly walk: Walk; readonly over: Promise<void> }>()
  readonly #stopped = new AbortController()
  readonly #waits = new Set<() => void>()
  /** Those who wait for the end of a run that another server is at. */
  readonly #listening = new Set<() => void>()
  /** When the next round of a kind begins. */
  readonly #rounds = new Map<string, Instant>()
  #alarm: Alarm | undefined
  #looking: Promise<void> | undefined
  #renewing: Promise<void> | undefined

  constructor(options: RunsOptions<Work>) {
    this.#options = options
    this.#carriesOut = options.carriesOut ?? true
    this.#xids = new Xids(options.clock)
    this.#courtesy = new Courtesy(options.db)
  }

  /** Says how runs of a kind are carried out. */
  define<Subject, Place>(kind: RunKind<Work, Subject, Place> | WalkedKind<Work>): void {
    // Its subjects and places are read from what was written as such.
    this.#kinds.set(kind.kind, kind as RunKind<Work> | WalkedKind<Work>)
  }

  /** Begins to look for runs that nobody is at. */
  start(): void {
    const { db, clock, log } = this.#options
    for (const kind of this.#kinds.keys()) {
      const firstUs = this.#roundsOf(kind)?.firstUs
      if (firstUs !== undefined && this.#carriesOut) this.#rounds.set(kind, later(clock.now(), firstUs))
    }
    db.listen(CHANNEL, () => this.#hear()).catch((error: unknown) =>
      log.warn({ err: error }, 'changes of runs are not heard at once; they are looked for every second'),
    )
    this.#tick()
  }

  /** Ends after the steps at hand; what is left is another server's, or this one's at its next start. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#alarm?.cancel()
    for (const end of this.#waits) end()
    for (const { walk } of this.#walks.values()) walk.wake()
    await Promise.all([this.#looking, this.#renewing])
    await Promise.all([...this.#walks.values()].map(({ over }) => over))
  }

  /** Resolves when nothing is left to do before the clock moves. */
  async settle(): Promise<void> {
    await this.#look()
    await Promise.all([...this.#walks.values()].map(({ walk, over }) => Promise.race([walk.quiet(), over])))
  }

  /** Runs `act` in one transaction. */
  inWork<T>(verb: string, act: (work: Work) => Promise<T>): Promise<T> {
    return this.#options.inWork(verb, act)
  }

  /** Writes down what is to be done; it begins when the transaction is durable. Gives the open run when it has a name and there is one. */
  async begin<Subject, Place>(work: RunWork, request: RunRequest<Subject, Place>): Promise<Run> {
    const { tx, now } = work
    const { expected = null, rate = null, name = null, dueAt = null, ...rest } = request
    const { id = this.#xids.next(), isHere: isAlwaysHere = false, ...asked } = rest
    const run: NewRun = { ...asked, id, name, startedAt: now, dueAt, expected, rate }
    const isHere = (this.#carriesOut || isAlwaysHere) && dueAt === null && !this.#stopped.signal.aborted
    const lease = isHere ? this.#lease() : { owner: null, until: now }
    if (!(await insertRun(tx, run, lease))) {
      const open = name === null ? null : await readOpenRun(tx, name)
      if (open === null) throw new Error(`run ${id} was not begun, and none of its name is open`)
      return open
    }
    const begun = { ...run, ...BEGUN, owner: lease.owner }
    work.afterCommit(() => (isHere ? this.#walk(begun) : this.#changed()))
    return begun
  }

  /** Forgets at most `most` runs that ended long ago; gives how many. Rows of kinds that walk by themselves are theirs. */
  forgetEnded({ tx, now }: RunWork, most: number): Promise<number> {
    const before = later(now, -KEPT_US)
    const kinds = [...this.#kinds.values()].filter((kind) => !('walk' in kind)).map(({ kind }) => kind)
    return removeEndedRuns(tx, kinds, { first: firstXidOf(before / 1_000_000n), before, most })
  }

  /** A round of a kind now, or the one that is under way, once it does not go on by itself; null when there was nothing to do. */
  async round(kind: string, subject: unknown = null): Promise<Run | null> {
    const { id, owner } = await this.#beginRound(kind, subject)
    // One that its server left is taken up at once.
    if (owner !== this.owner && this.#carriesOut) await this.#look()
    return this.over(id, ROUND_US)
  }

  #roundsOf(kind: string): Rounds | undefined {
    const known = this.#kinds.get(kind)
    return known !== undefined && 'rounds' in known ? known.rounds : undefined
  }

  #beginRound(kind: string, subject: unknown): Promise<Run> {
    const about = this.#roundsOf(kind)?.about
    if (about === undefined) throw new Error(`'${kind}' is no kind of run that comes round`)
    const name = subject === null ? kind : `${kind} ${JSON.stringify(subject)}`
    const request = { kind, name, about, subject, place: null, actor: kind }
    return this.#options.inWork('run.begin', (work) => this.begin(work, request))
  }

  /** Begins the rounds that are due. */
  async #beginRounds(): Promise<void> {
    const { clock } = this.#options
    for (const [kind, dueAt] of this.#rounds) {
      const now = clock.now()
      const everyUs = this.#roundsOf(kind)?.everyUs
      if (dueAt > now || this.#stopped.signal.aborted) continue
      await this.#beginRound(kind, null)
      if (everyUs === undefined) this.#rounds.delete(kind)
      else this.#rounds.set(kind, later(now, everyUs))
    }
  }

  /** The run with this id; null when there is none. */
  read(id: Xid): Promise<Run | null> {
    return this.#options.db.session('run.read', (session) => readRun(session, id))
  }

  /** Runs, the newest first. */
  list(page: RunPage): Promise<readonly Run[]> {
    return this.#options.db.session('run.list', (session) => readRuns(session, page))
  }

  /** Runs that are under way or paused. */
  open(): Promise<readonly Run[]> {
    return this.#options.db.session('run.open', openRuns)
  }

  /** How many rows a run did, once it came to its end. Refuses where it was paused, cancelled or failed instead, and when this server stops. */
  async done(id: Xid): Promise<number> {
    for (;;) {
      const run = await this.over(id, LONG_US)
      if (run === null || run.state === 'done') return run?.done ?? 0
      if (run.state !== 'running') throw failure('run_broken_off', { id, state: run.state, done: run.done })
      if (this.#stopped.signal.aborted) throw failure('service_stopping')
    }
  }

  /** The run once it does not go on by itself; after so long, and when this server stops, as it is then. */
  async over(id: Xid, withinUs: bigint): Promise<Run | null> {
    const patience = this.#wait(withinUs)
    try {
      for (;;) {
        // Before the look: a walk that ends meanwhile is waited for no longer.
        const here = this.#walks.get(id)?.over
        const run = await this.read(id)
        if (run?.state !== 'running' || patience.isOver()) return run
        // Another server tells of its end; a word that was lost is made up for by a look.
        const look = this.#wait(LOOK_US)
        this.#listening.add(look.end)
        await Promise.race([here ?? look.over, patience.over])
        this.#listening.delete(look.end)
        look.end()
      }
    } finally {
      patience.end()
    }
  }

  /** Who is at a run that is begun or resumed in a transaction of its kind: this server, or whoever takes it up. */
  leaseAt(now: Instant): { readonly owner: string | null; readonly until: Instant } {
    return this.#carriesOut ? this.#lease() : { owner: null, until: now }
  }

  /** A kind changed one of its runs: it goes on with it when it is this server's, and the others are told. */
  changed(run: Run): void {
    if (run.owner === this.owner && run.state === 'running') this.#walk(run)
    this.#changed()
  }

  /** Pauses, resumes or ends a run, or gives it another rate. When the transaction is durable, nothing more is done that this forbids. */
  async command(work: Work, id: Xid, command: RunCommand): Promise<Run> {
    const run = await lockRun(work.tx, id)
    if (run === null) throw failure('run_unknown', { id })
    const kind = this.#kinds.get(run.kind)
    if (kind !== undefined && 'walk' in kind) return (await kind.command(work, id, command)).run ?? run
    const { needs, words } = COMMANDS[command.act]
    if (!needs.includes(run.state))
      throw failure('run_state_wrong', { act: words, state: run.state, needed: needs.join(' or ') })
    const changed = await this.#change(work, run, this.#changeBy(run, command, work.now), noteOf(command))
    const isHere = changed.owner === this.owner
    work.afterCommit(() => {
      if (isHere) this.#walk(changed)
      this.#changed()
    })
    return changed
  }

  #changeBy(run: Run, command: RunCommand, now: Instant): RunChange {
    const nobody = { owner: null, until: null }
    switch (command.act) {
      case 'pause':
        return {
          state: 'paused',
          note: command.reason ?? `by ${command.actor}`,
          rateNow: null,
          lease: nobody,
        }
      case 'cancel':
        return {
          state: 'cancelled',
          note: command.reason ?? `by ${command.actor}`,
          endedAt: now,
          rateNow: null,
          lease: nobody,
        }
      case 'resume': {
        const isHere = this.#carriesOut && run.dueAt === null
        return { state: 'running', note: null, lease: isHere ? this.#lease() : { owner: null, until: now } }
      }
      case 'rate': {
        const isHeld = run.owner !== null && run.state === 'running'
        return {
          rate: command.rate,
          lease: isHeld ? { owner: run.owner, until: this.#lease().until } : { owner: null, until: now },
        }
      }
    }
  }

  /** Writes a change of the run itself, and files it. */
  async #change(work: Work, run: Run, change: RunChange, act: RunAct): Promise<Run> {
    const changed = changeRun(work.tx, run, { ...change, version: run.version + 1 })
    await this.#options.record?.(work, changed, act)
    return changed
  }

  #lease(): Lease {
    return { owner: this.owner, until: later(this.#options.clock.now(), LEASE_US) }
  }

  /** Something about a run changed: whoever is at it looks at once, and whoever may take it up. */
  #changed(): void {
    this.#hear()
    this.#options.db.notify(CHANNEL, '').catch(() => {})
  }

  #hear(): void {
    for (const look of this.#listening) look()
    for (const { walk } of this.#walks.values()) walk.wake()
    if (this.#alarm !== undefined) void this.#look()
  }

  #tick(): void {
    const { clock } = this.#options
    this.#alarm = clock.alarm(later(clock.now(), LOOK_US), () => this.#tick())
    void this.#look()
    if (this.#walks.size > 0) void this.#renew()
  }

  #renew(): Promise<void> {
    const { db, log } = this.#options
    this.#renewing ??= db
      .session('run.renew', (session) => renewRuns(session, this.#lease(), [...this.#walks.keys()]))
      .catch((error: unknown) => log.warn({ err: error }, 'the leases of runs were not renewed'))
      .finally(() => {
        this.#renewing = undefined
      })
    return this.#renewing
  }

  async #look(): Promise<void> {
    if (!this.#carriesOut) return
    this.#looking ??= this.#takeUp()
      .catch((error: unknown) =>
        this.#options.log.warn({ err: error }, 'runs were not looked for; the next round tries again'),
      )
      .finally(() => {
        this.#looking = undefined
      })
    return this.#looking
  }

  /** Takes up what nobody is at. */
  async #takeUp(): Promise<void> {
    const { db, clock, log } = this.#options
    await this.#beginRounds()
    const left = await db.session('run.left', (session) => runsLeft(session, clock.now()))
    for (const { id, kind } of left) {
      if (this.#stopped.signal.aborted || this.#walks.size >= MOST_WALKS) return
      if (!this.#kinds.has(kind) || this.#walks.has(id)) continue
      const run = await db.session('run.take', (session) => takeRun(session, id, this.#lease(), clock.now()))
      if (run === null) continue
      log.info({ run: id, kind }, 'run taken up')
      const known = this.#kinds.get(kind)
      if (known !== undefined && 'walk' in known && run.resumed > 0) known.resumed?.(run)
      this.#walk(run)
    }
  }

  /** Goes on with a run that is this server's. */
  #walk(run: Run): void {
    const known = this.#walks.get(run.id)
    if (known !== undefined) {
      // It may be about to end what it was at before the run was resumed.
      known.walk.wake()
      void known.over.then(() => this.#again(run.id))
      return
    }
    const kind = this.#kinds.get(run.kind)
    if (kind === undefined || this.#stopped.signal.aborted) return
    const { log } = this.#options
    const walk = 'walk' in kind ? kind.walk(run, this.#at) : this.#stepping(kind, run)
    const over = walk
      .go()
      .then((isLeft) => (isLeft ? this.#leave(run.id) : undefined))
      .catch((error: unknown) =>
        log.error({ err: error, run: run.id }, 'run broke off; its lease ends by itself'),
      )
      .finally(() => this.#walks.delete(run.id))
    this.#walks.set(run.id, { walk, over })
  }

  get #at(): { readonly owner: string; readonly signal: AbortSignal } {
    return { owner: this.owner, signal: this.#stopped.signal }
  }

  #stepping(kind: RunKind<Work>, run: Run): Walk {
    const { clock, log } = this.#options
    return new RunWalk(
      {
        clock,
        log,
        courtesy: this.#courtesy,
        signal: this.#stopped.signal,
        read: () => this.#readOwn(run.id),
        step: (most, rateNow) => this.#step(kind, run.id, most, rateNow),
        pause: (note) => this.#pause(run.id, note),
      },
      run,
      kind,
    )
  }

  /** The run, when it is to go on here. */
  async #readOwn(id: Xid): Promise<Run | null> {
    const run = await this.read(id)
    return run?.owner === this.owner && run.state === 'running' ? run : null
  }

  /** A run that was paused and resumed while its walk was ending. */
  async #again(id: Xid): Promise<void> {
    const run = await this.#readOwn(id).catch(() => null)
    if (run !== null) this.#walk(run)
  }

  /** One step in one transaction; null when the run does not go on here. */
  async #step(kind: RunKind<Work>, id: Xid, most: number, rateNow: number | null): Promise<StepTaken | null> {
    const { inWork, log } = this.#options
    const taken = await inWork(`run.${kind.kind}`, async (work) => {
      const run = await lockRun(work.tx, id)
      if (run === null || run.owner !== this.owner || run.state !== 'running') return null
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
    if (taken !== null && taken.next !== 'more') this.#changed()
    return taken
  }

  #following(next: Step['next'], now: Instant): RunChange {
    if (next === 'more') return { lease: this.#lease() }
    if (next === 'finished')
      return { state: 'done', endedAt: now, rateNow: null, lease: { owner: null, until: null } }
    if ('until' in next) return { dueAt: next.until, rateNow: null, lease: { owner: null, until: now } }
    const endedAt = next.state === 'failed' ? now : null
    return { ...next, endedAt, rateNow: null, lease: { owner: null, until: null } }
  }

  /** Halts a run that cannot go on here, unless it is another's by now. */
  async #pause(id: Xid, note: string): Promise<void> {
    await this.#options.inWork('run.pause', async (work) => {
      const run = await lockRun(work.tx, id)
      if (run === null || run.owner !== this.owner || run.state !== 'running') return
      const command = { act: 'pause', actor: OFFICE_ACTOR, reason: note } as const
      await this.#change(work, run, this.#changeBy(run, command, work.now), noteOf(command))
    })
  }

  async #leave(id: Xid): Promise<void> {
    const { db, log } = this.#options
    await db
      .session('run.leave', (session) => leaveRun(session, id, this.owner))
      .catch((error: unknown) =>
        log.warn({ err: error, run: id }, 'run was not left; its lease ends by itself'),
      )
  }

  /** `over` resolves after this time, when it is ended, and when this is stopped. */
  #wait(us: bigint): {
    readonly over: Promise<void>
    readonly isOver: () => boolean
    readonly end: () => void
  } {
    const { clock } = this.#options
    const { promise, resolve } = Promise.withResolvers<void>()
    let isOver = false
    const end = (): void => {
      isOver = true
      alarm.cancel()
      this.#waits.delete(end)
      resolve()
    }
    const alarm = clock.alarm(later(clock.now(), us), end)
    this.#waits.add(end)
    if (this.#stopped.signal.aborted) end()
    return { over: promise, isOver: () => isOver, end }
  }
}

/** What a new run is. */
const BEGUN = {
  state: 'running',
  note: null,
  endedAt: null,
  done: 0,
  skipped: 0,
  failed: 0,
  rateNow: null,
  resumed: 0,
  version: 1,
} as const

/** From which states a run comes to another, and how refusals name that. */
const COMMANDS: Readonly<
  Record<RunCommand['act'], { readonly needs: readonly RunState[]; readonly words: string }>
> = {
  pause: { needs: ['running'], words: 'paused' },
  resume: { needs: ['paused'], words: 'resumed' },
  cancel: { needs: ['running', 'paused'], words: 'cancelled' },
  rate: { needs: ['running', 'paused'], words: 'given another rate' },
}

function noteOf(command: RunCommand): RunAct {
  const { act, actor } = command
  if (act === 'rate')
    return { act, actor, notes: command.rate === null ? 'no limit' : `${command.rate} a second` }
  return { act, actor, notes: act === 'resume' ? null : command.reason }
}
