/** What a worker works on: its table of jobs, their order, and its options. */
import type { BackoffPolicy } from '../backoff.ts'
import type { Clock, Instant } from '../clock.ts'
import type { Held } from './held.ts'
import type { Worker } from './worker.ts'

export interface Claimed<Job> {
  readonly jobs: readonly Job[]
  /** End of the claims, unless renewed. */
  readonly until: Instant
  /** When to look again unless woken: at once, then, or never. */
  readonly again: 'now' | Instant | null
  /** The jobs are ours, but the next claim waits as after a failure. */
  readonly trouble?: unknown
}

/** Of one job, of some job, or of none ('away'): then it is tried again. */
export type Blame<Job> = 'away' | 'refused' | Held<Job>

export interface Settlement<Job, Result> {
  readonly held: Held<Job>
  readonly result: Result
}

/** A queue, an outbox table, jobs. Each source keeps its own tables and SQL. */
export interface WorkTable<Job, Result> {
  /** May wait for jobs until the signal aborts. */
  claim(ask: { readonly most: number; readonly signal: AbortSignal }): Promise<Claimed<Job>>
  /** New ends: unchanged if not renewable now, absent if lost. Left out: claims cannot be renewed. */
  renew?(held: readonly Held<Job>[]): Promise<ReadonlyMap<Held<Job>, Instant>>
  /** Writes results of one group in one transaction; rejects when none was written. */
  settle(results: readonly Settlement<Job, Result>[]): Promise<void>
  /** Whom an error meets. A renewal error that blames nobody leaves all as they are: it may pass. */
  blame(error: unknown, held: readonly Held<Job>[], during: 'renew' | 'settle'): Blame<Job>
  /** What one call can renew or settle. Default: everything. */
  groupOf?(job: Job, result?: Result): string | number
  /** Identifies a job that may be claimed again while held. */
  idOf?(job: Job): string
}

/** Default: as claimed. */
export interface WorkOrder<Job, Result> {
  add(held: Held<Job>): void
  next(): Held<Job> | undefined
  /** Results of other jobs that are not begun because this one ended. */
  ended?(held: Held<Job>, result: Result | null): readonly Settlement<Job, Result>[]
  /** A job was claimed again while its result is written. It is given back, and ends again, after that: others may wait for it. */
  claimedAgain?(held: Held<Job>): void
  takeAll(): readonly Held<Job>[]
}

/** `claim`, `renew`, `settle`: tried again. `lost`: its run is ended. `refused`, `late`: the result is left. `run`: it threw. */
export type Trouble = 'claim' | 'renew' | 'settle' | 'lost' | 'refused' | 'late' | 'run'

export interface WorkerOptions<Job, Result> {
  readonly clock: Clock
  readonly table: WorkTable<Job, Result>
  readonly room: (worker: Worker<Job, Result>) => number
  /** Ends soon after its signal aborts. null: nothing to write, the claim lapses or is lost. */
  readonly run: (held: Held<Job>) => Promise<Result | null>
  /** The result of a job that need not be done. */
  readonly known?: (job: Job) => Result | undefined
  /** For a job that was not begun. null: nothing. 'run': begin it anyway. */
  readonly unbegun: (held: Held<Job>, why: 'lost' | 'stopped') => Result | null | 'run'
  readonly reasonOf: (why: 'lost' | 'late' | 'stopped', job: Job) => Error
  readonly onTrouble: (during: Trouble, error: unknown, held: readonly Held<Job>[]) => void
  /** False: claiming ends with this error. */
  readonly claimsAgain?: (error: unknown) => boolean
  readonly order?: WorkOrder<Job, Result>
  /** Keeps the process alive; other waits here do not. */
  readonly holdsProcess?: boolean
  /** Left out: unbounded. */
  readonly concurrency?: number
  /** Of a run; left out: for ever. */
  readonly timeoutUs?: bigint
  /** Unrenewed jobs are dropped so long before their end; left out: when the table says that they are lost. */
  readonly dropUs?: bigint
  /** Skips results of ended claims: the table would not notice another owner. */
  readonly settlesInTime?: boolean
  readonly outage: BackoffPolicy
  /** For outages and stops, default `clock`: tests stop clocks, and stores come back in real time. */
  readonly waitsBy?: Clock
  /** Per call, in a group that begins with this result. */
  readonly mostSettled: (first: Result) => number
  /** Before a result is left. */
  readonly mostRefusals: number
  /** After all runs have ended; default 4. */
  readonly lastTries?: number
  /** A stop waits so long for ended runs and last results. */
  readonly lastWritesMs: number
}
