/** Everything that can be asked of runs: begin, read, await, pause, resume, cancel. */
import { after, type Instant, later } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import type { Rounds, Service } from '../core/rounds.ts'
import { firstXidOf, type Xid, Xids } from '../core/xid.ts'
import { Carrier, type CarrierParts, LOOK_US } from './carrier.ts'
import {
  COMMANDS,
  keptLease,
  noteOf,
  type RunAct,
  type RunCommand,
  type RunKind,
  type RunRequest,
  type RunSchedule,
  type RunWork,
  type WalkedKind,
} from './run.ts'
import {
  changeRun,
  insertRun,
  lockRun,
  type NewRun,
  openRuns,
  type Run,
  type RunChange,
  type RunPage,
  readOpenRun,
  readRun,
  readRuns,
  removeEndedRuns,
} from './run-rows.ts'

interface RunsOptions<Work extends RunWork>
  extends Pick<CarrierParts<Work>, 'db' | 'clock' | 'log' | 'inWork'> {
  readonly record?: (work: Work, run: Run, act: RunAct) => Promise<void>
  /** False: runs are left to other servers. Default true. */
  readonly carriesOut?: boolean
}

/** A wait for the end looks again after so long; clocks may jump. */
const LONG_US = 86_400_000_000n
/** Ended runs are kept. */
const KEPT_US = 30n * 86_400_000_000n
const ROUND_US = 600_000_000n
const OFFICE_ACTOR = 'office'

export class Runs<Work extends RunWork> implements Service {
  readonly name = 'runs'
  readonly #options: RunsOptions<Work>
  readonly #carriesOut: boolean
  readonly #carrier: Carrier<Work>
  readonly #xids: Xids
  readonly #waits = new Set<() => void>()
  readonly #listening = new Set<() => void>()
  readonly #roundsDueAt = new Map<string, Instant>()

  constructor(options: RunsOptions<Work>) {
    const { db, clock, log, inWork, carriesOut = true } = options
    this.#options = options
    this.#carriesOut = carriesOut
    this.#xids = new Xids(clock)
    this.#carrier = new Carrier({
      ...{ db, clock, log, inWork, carriesOut },
      beginRounds: () => this.#beginRounds(),
      pause: async (work, run, reason) => {
        await this.#change(work, run, { act: 'pause', actor: OFFICE_ACTOR, reason })
      },
      onChange: () => {
        for (const look of this.#listening) look()
      },
    })
  }

  get owner(): string {
    return this.#carrier.owner
  }

  get rounds(): readonly Rounds[] {
    return this.#carrier.rounds
  }

  define<Subject, Place>(kind: RunKind<Work, Subject, Place> | WalkedKind<Work>): void {
    // Subjects and places are read as they were written.
    this.#carrier.kinds.set(kind.kind, kind as RunKind<Work> | WalkedKind<Work>)
  }

  /** null: all. */
  async sourcesOf(run: Run): Promise<readonly string[] | null> {
    const kind = this.#carrier.kinds.get(run.kind)
    return kind?.sourcesOf === undefined ? [] : kind.sourcesOf(run)
  }

  start(): void {
    const { clock } = this.#options
    for (const kind of this.#carrier.kinds.keys()) {
      const firstUs = this.#roundsOf(kind)?.firstUs
      if (firstUs !== undefined && this.#carriesOut) this.#roundsDueAt.set(kind, later(clock.now(), firstUs))
    }
    this.#carrier.start()
  }

  /** Ends after the current steps; another server, or the next start, continues. */
  async stop(): Promise<void> {
    const stopped = this.#carrier.stop()
    for (const end of this.#waits) end()
    await stopped
  }

  /** Resolves when nothing is left to do before the clock moves. */
  settle(): Promise<void> {
    return this.#carrier.settle()
  }

  inWork<T>(verb: string, act: (work: Work) => Promise<T>): Promise<T> {
    return this.#options.inWork(verb, act)
  }

  /** Stores a run, which begins once the transaction is durable. Returns the open run of its name if there is one. */
  async begin<Subject, Place>(work: RunWork, request: RunRequest<Subject, Place>): Promise<Run> {
    const { tx, now } = work
    const { expected = null, rate = null, name = null, ...rest } = request
    const { id = this.#xids.next(), isHere: isAlwaysHere = false, ...asked } = rest
    const run: NewRun = { ...asked, id, name, startedAt: now, expected, rate }
    const isHere = (this.#carriesOut || isAlwaysHere) && !this.#carrier.isStopped
    const lease = isHere ? this.#carrier.lease() : { owner: null, until: now }
    if (!(await insertRun(tx, run, lease))) {
      const open = name === null ? null : await readOpenRun(tx, name)
      if (open === null) throw new Error(`run ${id} was not begun, and none of its name is open`)
      return open
    }
    const begun = { ...run, ...BEGUN, owner: lease.owner }
    work.afterCommit(() => (isHere ? this.#carrier.goOn(begun) : this.#carrier.changed()))
    return begun
  }

  /** Removes some runs that ended long ago; returns how many. Walked kinds remove their own. */
  forgetEnded({ tx, now }: RunWork): Promise<number> {
    const before = later(now, -KEPT_US)
    const kinds = [...this.#carrier.kinds.values()]
      .filter((kind) => !('walk' in kind))
      .map(({ kind }) => kind)
    return removeEndedRuns(tx, kinds, { first: firstXidOf(before / 1_000_000n), before })
  }

  /** A round now, or the one under way, once it stops going on by itself; null: nothing to do. */
  async round(kind: string, subject: unknown = null): Promise<Run | null> {
    const { id, owner } = await this.#beginRound(kind, subject)
    // A round that its server left is taken up at once.
    if (owner !== this.owner && this.#carriesOut) await this.#carrier.look()
    return this.over(id, ROUND_US)
  }

  #roundsOf(kind: string): RunSchedule | undefined {
    const known = this.#carrier.kinds.get(kind)
    return known !== undefined && 'rounds' in known ? known.rounds : undefined
  }

  #beginRound(kind: string, subject: unknown): Promise<Run> {
    const about = this.#roundsOf(kind)?.about
    if (about === undefined) throw new Error(`'${kind}' is no kind of run that comes round`)
    const name = subject === null ? kind : `${kind} ${JSON.stringify(subject)}`
    const request = { kind, name, about, subject, place: null, actor: kind }
    return this.#options.inWork('run.begin', (work) => this.begin(work, request))
  }

  async #beginRounds(): Promise<void> {
    const { clock } = this.#options
    for (const [kind, dueAt] of this.#roundsDueAt) {
      const now = clock.now()
      const everyUs = this.#roundsOf(kind)?.everyUs
      if (dueAt > now || this.#carrier.isStopped) continue
      await this.#beginRound(kind, null)
      if (everyUs === undefined) this.#roundsDueAt.delete(kind)
      else this.#roundsDueAt.set(kind, later(now, everyUs))
    }
  }

  read(id: Xid): Promise<Run | null> {
    return this.#options.db.session('run.read', (session) => readRun(session, id))
  }

  list(page: RunPage): Promise<readonly Run[]> {
    return this.#options.db.session('run.list', (session) => readRuns(session, page))
  }

  open(): Promise<readonly Run[]> {
    return this.#options.db.session('run.open', openRuns)
  }

  /** Rows done at the end. Throws if the run was paused, cancelled or failed, or when this server stops. */
  async done(id: Xid): Promise<number> {
    for (;;) {
      const run = await this.over(id, LONG_US)
      if (run === null || run.state === 'done') return run?.done ?? 0
      if (run.state !== 'running') throw failure('run_broken_off', { id, state: run.state, done: run.done })
      if (this.#carrier.isStopped) throw failure('service_stopping')
    }
  }

  /** Waits until the run stops going on by itself, for `withinUs` at most, or until this server stops. */
  async over(id: Xid, withinUs: bigint): Promise<Run | null> {
    const patience = this.#wait(withinUs)
    try {
      for (;;) {
        // Before the look: a run that ends or begins here meanwhile needs no wait.
        const here = this.#carrier.overHere(id)
        // The owner announces the end; a look makes up for a lost notification.
        const look = this.#wait(LOOK_US)
        this.#listening.add(look.end)
        try {
          const run = await this.read(id)
          if (run?.state !== 'running' || patience.isOver()) return run
          await Promise.race([here ?? look.over, patience.over])
        } finally {
          this.#listening.delete(look.end)
          look.end()
        }
        // Then others may take it up, with the counts of the last step here.
        if (this.#carrier.isStopped) await here
      }
    } finally {
      patience.end()
    }
  }

  /** Of a run begun or resumed in a transaction of its kind: this server's, or free to take up. */
  leaseAt(now: Instant): { readonly owner: string | null; readonly until: Instant } {
    return this.#carriesOut ? this.#carrier.lease() : { owner: null, until: now }
  }

  /** For kinds that change their own runs: continues one of this server's, and notifies others. */
  changed(run: Run): void {
    if (run.owner === this.owner && run.state === 'running') this.#carrier.goOn(run)
    this.#carrier.changed()
  }

  /** Once the transaction is durable, no step follows that the command forbids. */
  async command(work: Work, id: Xid, command: RunCommand): Promise<Run> {
    const run = await lockRun(work.tx, id)
    if (run === null) throw failure('run_unknown', { id })
    const kind = this.#carrier.kinds.get(run.kind)
    if (kind !== undefined && 'walk' in kind) return (await kind.command(work, id, command)).run ?? run
    const { needs, words } = COMMANDS[command.act]
    if (!needs.includes(run.state))
      throw failure('run_state_wrong', { act: words, state: run.state, needed: needs.join(' or ') })
    const changed = await this.#change(work, run, command)
    const isHere = changed.owner === this.owner
    work.afterCommit(() => {
      if (isHere) this.#carrier.goOn(changed)
      this.#carrier.changed()
    })
    return changed
  }

  #changeBy(run: Run, command: RunCommand, now: Instant): RunChange {
    switch (command.act) {
      case 'pause':
      case 'cancel': {
        const isOver = command.act === 'cancel'
        return {
          ...{ state: isOver ? 'cancelled' : 'paused', endedAt: isOver ? now : null, rateNow: null },
          ...{ note: command.reason ?? `by ${command.actor}`, lease: { owner: null, until: null } },
        }
      }
      case 'resume':
        return { state: 'running', note: null, lease: this.leaseAt(now) }
      case 'rate':
        return { rate: command.rate, lease: keptLease(run, now) }
    }
  }

  async #change(work: Work, run: Run, command: RunCommand): Promise<Run> {
    const change = this.#changeBy(run, command, work.now)
    const changed = changeRun(work.tx, run, { ...change, version: run.version + 1 })
    await this.#options.record?.(work, changed, noteOf(command))
    return changed
  }

  /** `over` resolves after this time, on `end`, and when this server stops. */
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
    const alarm = after(clock, us, end)
    this.#waits.add(end)
    if (this.#carrier.isStopped) end()
    return { over: promise, isOver: () => isOver, end }
  }
}

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
