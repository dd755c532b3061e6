/**
 * Runs: work over many rows, in steps of one transaction each. A row says how far a run is and which server has it.
 *
 *   begin ──► running ──► done | failed
 *               │ ▲ └────► cancelled
 *               ▼ │
 *              paused
 *
 * Servers renew leases and look for runs without an owner every second, so a dead server's run continues elsewhere within five seconds. A
 * step locks the row, checks that the run is still this server's, and moves place and counts with its work: all or nothing.
 */
import { type Instant, later } from '../core/clock.ts'
import type { Xid } from '../core/xid.ts'
import type { Transaction } from '../store/database.ts'
import type { Run, RunChange } from './run-rows.ts'
import type { RunState } from './shapes.ts'
import type { Yielding } from './yielding.ts'

export type { Run, RunPage } from './run-rows.ts'

/** `now` is when the transaction began. */
export interface RunWork {
  readonly tx: Transaction
  readonly now: Instant
  afterCommit(effect: () => void): void
}

export interface Step<Place = unknown> {
  /** Left out: unchanged. */
  readonly place?: Place
  readonly done?: number
  readonly skipped?: number
  readonly failed?: number
  /** A new estimate. */
  readonly expected?: number | null
  readonly next: 'more' | 'finished' | { readonly state: 'paused' | 'failed'; readonly note: string }
}

/** Every server defines the same kinds and continues any of their runs. */
export interface RunKind<Work extends RunWork, Subject = unknown, Place = unknown> {
  readonly kind: string
  /** Rows per step: a few milliseconds, also on SQLite, where everybody waits for it. */
  readonly batch: number
  /** Rest after a step beside live traffic, in durations of the step. Less where somebody waits for the end. */
  readonly rest?: number
  /** Repeated as a whole, by one server at a time. */
  readonly rounds?: RunSchedule
  /** null: letters of all sources. Left out: none. */
  sourcesOf?(run: Run<Subject, Place>): readonly string[] | null
  /** Does the next `most` rows, in the transaction that writes the progress. */
  step(work: Work, run: Run<Subject, Place>, most: number): Promise<Step<Place>>
}

/** Another round at once or at an instant; none here; or none here, and the run is free for others. */
export type Next = 'more' | Instant | 'over' | 'left'

/** What a run does on this server; `RunWalk` waits between rounds and retries. */
export interface Course {
  /** `isWoken`: the run may have changed, or a round failed. */
  readonly round: (isWoken: boolean) => Promise<Next>
  /** Pauses the run. Left out: after a failure its lease ends by itself. */
  readonly pause?: (note: string) => Promise<Next>
  /** A note for an error that would only come again; null: it may pass. */
  readonly obstacle?: (error: unknown) => string | null
  /** Waited for without end, like an absent store. */
  readonly isPassing?: (error: unknown) => boolean
}

export interface Here {
  readonly owner: string
  readonly signal: AbortSignal
  readonly yielding: Yielding
}

/** A kind that is more than step after step. Transactions, commands and rows are its own; each checks that the run is still its server's. */
export interface WalkedKind<Work extends RunWork> {
  readonly kind: string
  walk(run: Run, here: Here): Course
  sourcesOf?(run: Run): Promise<readonly string[]>
  command(work: Work, id: Xid, command: RunCommand): Promise<{ readonly run: Run | null }>
  /** Begun by another server, or before a restart. */
  resumed?(run: Run): void
}

/** A round without work leaves no row. */
export interface RunSchedule {
  readonly about: string
  /** After the start, and after that; left out: only when asked for. */
  readonly firstUs?: bigint
  readonly everyUs?: bigint
}

/** A lost server loses its runs after so long; with a look every second, another has them within five. */
export const LEASE_US = 3_000_000n

/** The owner stays while there is something to do. */
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
  /** An open run of this name is the answer. */
  readonly name?: string
  /** Left out: a new one. */
  readonly id?: Xid
  /** Begun here, even where runs are left to others. */
  readonly isHere?: boolean
}

export type RunCommand =
  | { readonly act: 'resume'; readonly actor: string }
  | { readonly act: 'pause' | 'cancel'; readonly actor: string; readonly reason: string | null }
  | { readonly act: 'rate'; readonly actor: string; readonly rate: number | null }

export interface RunAct {
  readonly act: RunCommand['act']
  readonly actor: string
  readonly notes: string | null
}

/** States that a command needs, and its word in refusals. */
export const COMMANDS: Readonly<
  Record<RunCommand['act'], { readonly needs: readonly RunState[]; readonly words: string }>
> = {
  pause: { needs: ['running'], words: 'paused' },
  resume: { needs: ['paused'], words: 'resumed' },
  cancel: { needs: ['running', 'paused'], words: 'cancelled' },
  rate: { needs: ['running', 'paused'], words: 'given another rate' },
}

export function noteOf(command: RunCommand): RunAct {
  const { act, actor } = command
  if (act === 'rate')
    return { act, actor, notes: command.rate === null ? 'no limit' : `${command.rate} a second` }
  return { act, actor, notes: act === 'resume' ? null : command.reason }
}
