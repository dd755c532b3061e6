/** What a worker works on, and how: the table of its jobs, their order, and the terms of whoever uses it. */
import type { BackoffPolicy } from '../backoff.ts'
import type { Clock, Instant } from '../clock.ts'
import type { Held } from './held.ts'
import type { Worker } from './worker.ts'

/** What a claim gave. */
export interface Claimed<Job> {
  readonly jobs: readonly Job[]
  /** The claims end then, unless they are renewed. */
  readonly until: Instant
  /** When to look again if nobody wakes the worker: at once, then, or never. */
  readonly again: 'now' | Instant | null
  /** The jobs are ours, but nothing can be done with them: the next claim waits as after a failure. */
  readonly trouble?: unknown
}

/** Whether an error is the fault of one job, of some job, or of none: then nothing is decided, and it is tried again. */
export type Blame<Job> = 'away' | 'refused' | Held<Job>

export interface Settlement<Job, Result> {
  readonly held: Held<Job>
  readonly result: Result
}

/** Where work lies: a queue, somebody's outbox table, jobs. Each source keeps its own tables and SQL. */
export interface WorkTable<Job, Result> {
  /** Claims at most so many. May wait for some until the signal aborts. */
  claim(ask: { readonly most: number; readonly signal: AbortSignal }): Promise<Claimed<Job>>
  /** Gives new ends: the same end of what could not be renewed now, none of what is lost. Left out: claims cannot be renewed. */
  renew?(held: readonly Held<Job>[]): Promise<ReadonlyMap<Held<Job>, Instant>>
  /** Writes down results of one group, in one transaction; rejects when it wrote none of them. */
  settle(results: readonly Settlement<Job, Result>[]): Promise<void>
  /** Whom an error of `renew` or `settle` meets. One of a renewal that blames nobody leaves all as they are: work is not cut short for what may pass. */
  blame(error: unknown, held: readonly Held<Job>[], during: 'renew' | 'settle'): Blame<Job>
  /** What can be renewed, or settled by one call, is of one group. Default: everything. */
  groupOf?(job: Job, result?: Result): string | number
  /** What a job is known by, where one may be claimed again while it is held. */
  idOf?(job: Job): string
}

/** In which order jobs are begun. Default: as they were claimed. */
export interface WorkOrder<Job, Result> {
  add(held: Held<Job>): void
  /** The next that can be begun now. */
  next(): Held<Job> | undefined
  /** A job is over: gives the results of others that are not begun because of it. */
  ended?(held: Held<Job>, result: Result | null): readonly Settlement<Job, Result>[]
  /** A job whose result is on its way was claimed once more. It is given back, and ends again, when the result is written: others may have to wait for it. */
  claimedAgain?(held: Held<Job>): void
  /** Gives up everything that is not begun. */
  takeAll(): readonly Held<Job>[]
}

/** `claim`, `renew`, `settle`: it is tried again. `lost`: its run is ended. `refused`, `late`: the result is left. `run`: it threw. */
export type Trouble = 'claim' | 'renew' | 'settle' | 'lost' | 'refused' | 'late' | 'run'

export interface WorkerOptions<Job, Result> {
  readonly clock: Clock
  readonly table: WorkTable<Job, Result>
  /** How many more may be claimed now. */
  readonly room: (worker: Worker<Job, Result>) => number
  /** Does a job, and ends soon after its signal aborts. null: nothing is to be written, the claim lapses or is lost. */
  readonly run: (held: Held<Job>) => Promise<Result | null>
  /** The result of a job that need not be done. */
  readonly known?: (job: Job) => Result | undefined
  /** What is written for a job that was not begun. null: nothing. 'run': it is begun all the same. */
  readonly unbegun: (held: Held<Job>, why: 'lost' | 'stopped') => Result | null | 'run'
  /** Why a run is ended: its claim is lost, it took too long, or the worker stops. */
  readonly reasonOf: (why: 'lost' | 'late' | 'stopped', job: Job) => Error
  readonly onTrouble: (during: Trouble, error: unknown, held: readonly Held<Job>[]) => void
  /** False: claiming ends with this error. Default: it is tried again. */
  readonly claimsAgain?: (error: unknown) => boolean
  readonly order?: WorkOrder<Job, Result>
  /** The process lives as long as the worker does: whatever else waits here waits on timers that do not hold it. */
  readonly holdsProcess?: boolean
  /** Runs at the same time; however many there are unless given. */
  readonly concurrency?: number
  /** How long a run may take; for ever unless given. */
  readonly timeoutUs?: bigint
  /** Jobs whose claims could not be renewed are dropped so long before they end; unless given, when the table says that they are lost. */
  readonly dropUs?: bigint
  /** Results of claims that are over are not written: the table would not notice that somebody else has the job. */
  readonly settlesInTime?: boolean
  readonly outage: BackoffPolicy
  /** Outages and stops are waited out by it, and by `clock` unless given: tests stop clocks, and stores come back whatever time it is made. */
  readonly waitsBy?: Clock
  /** Results of one call, in a group that begins with this one. */
  readonly mostSettled: (first: Result) => number
  /** How often a result may be refused before it is left. */
  readonly mostRefusals: number
  /** How often a result is tried once everything that ran has ended; 4 times unless given. */
  readonly lastTries?: number
  /** How long a stop waits for runs that were cut short and for last results. */
  readonly lastWritesMs: number
}
