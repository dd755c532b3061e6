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
import { type Instant, later } from '../core/clock.ts'
import type { Xid } from '../core/xid.ts'
import type { Transaction } from '../store/database.ts'
import type { Run, RunChange } from './run-rows.ts'
import type { RunState } from './shapes.ts'
import type { Yielding } from './yielding.ts'

export type { Run, RunPage } from './run-rows.ts'

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
  readonly next: 'more' | 'finished' | { readonly state: 'paused' | 'failed'; readonly note: string }
}

/** A kind of run. Every server defines the same kinds, and any of them goes on with a run of these. */
export interface RunKind<Work extends RunWork, Subject = unknown, Place = unknown> {
  readonly kind: string
  /** Rows of one step at most: a few milliseconds, also on SQLite, where everybody waits for it. */
  readonly batch: number
  /** Beside live traffic a step is followed by a rest of so many times its length. Less where somebody waits for the end. */
  readonly rest?: number
  /** Done again and again, as a whole, by one server at a time. */
  readonly rounds?: RunSchedule
  /** The sources whose letters it acts on; null: all. Left out: it acts on no letters. */
  sourcesOf?(run: Run<Subject, Place>): readonly string[] | null
  /** Does the next `most` rows, in the transaction that writes how far the run is then. */
  step(work: Work, run: Run<Subject, Place>, most: number): Promise<Step<Place>>
}

/** What follows a round: another, at once or at an instant; none here; or none here, and the run is left to others. */
export type Next = 'more' | Instant | 'over' | 'left'

/** What a run does on this server, round by round; `RunWalk` waits between rounds, and tries again what failed. */
export interface Course {
  /** `isWoken`: somebody may have changed something about the run, or a round failed. */
  readonly round: (isWoken: boolean) => Promise<Next>
  /** Halts the run. Left out: one that failed breaks off, and its lease ends by itself. */
  readonly pause?: (note: string) => Promise<Next>
  /** What an error says that would only come again, for a note; null: it may pass. */
  readonly obstacle?: (error: unknown) => string | null
  /** Whether it is waited for without an end, like a store that is away. */
  readonly isPassing?: (error: unknown) => boolean
}

/** Where a run is under way. */
export interface Here {
  readonly owner: string
  /** Ends it after the round at hand; whoever is next goes on with it. */
  readonly signal: AbortSignal
  readonly yielding: Yielding
}

/**
 * A kind whose runs are more than one step after the other. Its transactions are its own: each checks that the run is still its
 * server's. So is what people do to it, and its rows stay until it removes them.
 */
export interface WalkedKind<Work extends RunWork> {
  readonly kind: string
  walk(run: Run, here: Here): Course
  /** As of other kinds. */
  sourcesOf?(run: Run): Promise<readonly string[]>
  /** What is done to the run, in its own words. */
  command(work: Work, id: Xid, command: RunCommand): Promise<{ readonly run: Run | null }>
  /** A run was taken up that another server, or an earlier one, had begun. */
  resumed?(run: Run): void
}

/** How a kind of run comes round. A round that did nothing leaves no row behind. */
export interface RunSchedule {
  readonly about: string
  /** When a server begins one by itself: so long after its start, and so long after that; left out: when it is asked for. */
  readonly firstUs?: bigint
  readonly everyUs?: bigint
}

/** A server that does not come back has lost a run after so long: with a look every second, another is at it within five. */
export const LEASE_US = 3_000_000n

/** Whoever is at a run stays at it as long as there is something to do. */
export function keptLease({ owner, state }: Pick<Run, 'owner' | 'state'>, now: Instant): RunChange['lease'] {
  if (state !== 'running') return { owner: null, until: null }
  return { owner, until: owner === null ? now : later(now, LEASE_US) }
}

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

/** From which states a run comes to another, and how refusals name that. */
export const COMMANDS: Readonly<
  Record<RunCommand['act'], { readonly needs: readonly RunState[]; readonly words: string }>
> = {
  pause: { needs: ['running'], words: 'paused' },
  resume: { needs: ['paused'], words: 'resumed' },
  cancel: { needs: ['running', 'paused'], words: 'cancelled' },
  rate: { needs: ['running', 'paused'], words: 'given another rate' },
}

/** What is filed of a command. */
export function noteOf(command: RunCommand): RunAct {
  const { act, actor } = command
  if (act === 'rate')
    return { act, actor, notes: command.rate === null ? 'no limit' : `${command.rate} a second` }
  return { act, actor, notes: act === 'resume' ? null : command.reason }
}
