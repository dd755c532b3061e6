/**
 * What adopting a table is told, and what it tells: while it runs, and at its end. Adoption is a list of steps. Each knows its SQL
 * before it runs, whether it is still needed, and can be run again after whatever became of it: that makes the dry run, and going on
 * after a kill, the same list.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type BackoffPolicy, backoffDelayMs } from '../../../core/backoff.ts'
import type { Dialect } from '../../../store/database.ts'
import type { RunSql } from '../table/layout.ts'
import type { TableNames, TableOptions } from '../table/table-names.ts'
import type { Target } from './target.ts'

export interface AdoptOptions extends TableOptions {
  /** Rows that are given keys in one transaction. */
  readonly chunk?: number
  /** Makes the key NOT NULL. */
  readonly enforce?: boolean
  /** Gives rows that share tenant and key with an older one a key of their own. */
  readonly rekeyDuplicates?: boolean
  /** Looks only: the report has the SQL that would be run. */
  readonly dryRun?: boolean
  /** How long to wait, in all and for one step, for what others hold. */
  readonly lockWaitSeconds?: number
  readonly onStep?: (step: StepReport) => void
  readonly onProgress?: (progress: AdoptProgress) => void
  /** Told in a sentence what it waits for, whenever that changes. */
  readonly onWait?: (reason: string) => void
  /** Stops it where it is; started again, it goes on from there. */
  readonly signal?: AbortSignal
}

export type StepOutcome = 'done' | 'already there' | 'skipped'

export interface StepReport {
  /** What the step is for, in a few words. */
  readonly what: string
  /** What is sent to the database. */
  readonly sql: string
  readonly outcome: StepOutcome
}

export interface AdoptProgress {
  readonly label: string
  readonly done: number
  readonly expected: number
  readonly unit: 'rows' | 'blocks'
  /** Of rows. */
  readonly perSecond?: number
}

/** Rows that share a tenant and a key. */
export interface Duplicate {
  readonly tenantId: string
  readonly idempotencyKey: string
  readonly rows: number
  /** The first of them, the oldest first. */
  readonly ids: readonly string[]
}

export interface Duplicates {
  /** The first of them. */
  readonly listed: readonly Duplicate[]
  readonly count: number
}

export interface AdoptReport {
  readonly table: string
  /** There was no such table. */
  readonly created: boolean
  readonly rows: number
  /** Rows without a key, when it had ended. */
  readonly keysMissing: number
  readonly keysFilled: number
  /** The first 20 pairs of tenant and key that were found more than once. */
  readonly duplicates: readonly Duplicate[]
  /** How many such pairs there are. */
  readonly duplicateCount: number
  /** Rows that were given a key of their own because an older one had the same. */
  readonly rekeyed: number
  /** Every row has a key, and no tenant has one twice. A dry run tells how it is now. */
  readonly complete: boolean
  readonly steps: readonly StepReport[]
  /** What its owner should know about the table. */
  readonly notes: readonly string[]
}

/** Options with their defaults. */
export interface AdoptSettings
  extends Required<Omit<AdoptOptions, keyof TableOptions | 'lockWaitSeconds' | 'signal'>> {
  readonly names: TableNames
  readonly options: TableOptions
  readonly lockWaitMs: number
  readonly signal: AbortSignal | undefined
}

/** What the steps find out while they run. */
export interface Findings {
  keysFilled: number
  rekeyed: number
  duplicates: Duplicates
  /** They stand in the way of the unique index. */
  duplicatesLeft: boolean
  readonly notes: string[]
}

/** Others hold what a step needs, for longer than it may wait. Nothing is half done; start it again later. */
export class AdoptionBlocked extends Error {
  override readonly name = 'AdoptionBlocked'
}

/** Tries what others may stand in the way of until it is done: steps back ever longer, and gives up after a while. */
export async function patiently<T>(
  { lockWaitMs, signal }: AdoptSettings,
  stepBack: BackoffPolicy,
  attempt: () => T | Promise<T>,
  /** Who stands in the way, given the error of this try; null: nobody does. */
  obstacleTo: (error: unknown, tries: number) => Promise<string | null>,
): Promise<T> {
  const deadlineMs = performance.now() + lockWaitMs
  for (let tries = 1; ; tries++) {
    signal?.throwIfAborted()
    try {
      return await attempt()
    } catch (error) {
      const obstacle = await obstacleTo(error, tries)
      if (obstacle === null) throw error
      const waitedSeconds = Math.round(lockWaitMs / 1_000)
      if (performance.now() > deadlineMs)
        throw new AdoptionBlocked(`${obstacle}; gave up after ${waitedSeconds} s`, { cause: error })
    }
    await pause(backoffDelayMs(tries, stepBack), undefined, { signal })
  }
}

export interface Step {
  readonly what: string
  readonly sql: string
  /** False when the table has it already. Reads only. */
  needed(): boolean | Promise<boolean>
  /** Left out: its SQL is sent as it is printed. */
  run?(): Promise<StepOutcome>
}

/** A table on its way: what it will be, the database that it lies in, what was asked for, and what was found out so far. */
export interface Adoption extends Target {
  readonly run: RunSql
  /** How many rows a statement changed. */
  readonly change: (sql: string) => Promise<number>
  /** Runs statements as they are printed, and waits in turn with others for what they lock. */
  readonly script: (sql: string) => Promise<void>
  readonly settings: AdoptSettings
  readonly findings: Findings
}

/** One database, opened to adopt a table in it. */
export interface Ground extends Pick<Adoption, 'run' | 'change' | 'script'> {
  readonly dialect: Dialect
  /** Makes sure that no other adoption of the table runs. */
  begin(): Promise<void>
  /** Makes the table, where there is none. */
  create(): Step
  /** What a table that exists needs; refuses one that cannot be adopted here. */
  plan(adoption: Adoption): Promise<readonly Step[]>
  close(): Promise<void>
}

/** Does what a step is for. */
export async function carryOut({ sql, run }: Step, script: Ground['script']): Promise<StepOutcome> {
  if (run !== undefined) return run()
  await script(sql)
  return 'done'
}

/** Runs the steps that are needed, one after the other; a dry run skips them. */
export async function runPlan(
  steps: readonly Step[],
  { script }: Ground,
  { dryRun, onStep, signal }: AdoptSettings,
): Promise<readonly StepReport[]> {
  const reports: StepReport[] = []
  for (const step of steps) {
    signal?.throwIfAborted()
    const outcome = !(await step.needed())
      ? 'already there'
      : dryRun
        ? 'skipped'
        : await carryOut(step, script)
    const report: StepReport = { what: step.what, sql: step.sql, outcome }
    reports.push(report)
    onStep(report)
  }
  return reports
}
