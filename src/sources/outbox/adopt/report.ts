/**
 * Options, report and steps of an adoption. Each step knows its SQL before it runs, whether it is still needed, and can
 * be run again after anything: the dry run and going on after a kill are the same list.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type BackoffPolicy, backoffDelayMs } from '../../../core/backoff.ts'
import type { Dialect } from '../../../store/database.ts'
import type { RunSql } from '../table/layout.ts'
import type { TableNames, TableOptions } from '../table/table-names.ts'
import type { Target } from './target.ts'

export interface AdoptOptions extends TableOptions {
  /** Rows that get keys in one transaction. Default 10,000. */
  readonly chunk?: number
  /** Makes the key NOT NULL. */
  readonly enforce?: boolean
  /** Gives rows with the tenant and key of an older one a key of their own. */
  readonly rekeyDuplicates?: boolean
  /** Changes nothing: the report has the SQL that would be run. */
  readonly dryRun?: boolean
  /** How long one step may wait for what others hold. */
  readonly lockWaitSeconds?: number
  readonly onStep?: (step: StepReport) => void
  readonly onProgress?: (progress: AdoptProgress) => void
  /** A sentence about what it waits for, whenever that changes. */
  readonly onWait?: (reason: string) => void
  /** Stops it. Started again, it goes on from there. */
  readonly signal?: AbortSignal
}

export type StepOutcome = 'done' | 'already there' | 'skipped'

export interface StepReport {
  /** Its purpose, in a few words. */
  readonly what: string
  /** Sent to the database. */
  readonly sql: string
  readonly outcome: StepOutcome
}

export interface AdoptProgress {
  readonly label: string
  readonly done: number
  readonly expected: number
  readonly unit: 'rows' | 'blocks'
  readonly perSecond?: number
}

export interface Duplicate {
  readonly tenantId: string
  readonly idempotencyKey: string
  readonly rows: number
  /** The oldest first; not all. */
  readonly ids: readonly string[]
}

export interface Duplicates {
  readonly listed: readonly Duplicate[]
  readonly count: number
}

export interface AdoptReport {
  readonly table: string
  readonly created: boolean
  readonly rows: number
  /** At the end. */
  readonly keysMissing: number
  readonly keysFilled: number
  /** The first 20 pairs of tenant and key that were there more than once. */
  readonly duplicates: readonly Duplicate[]
  readonly duplicateCount: number
  /** Rows that got a key of their own because an older one had theirs. */
  readonly rekeyed: number
  /** Every row has a key, and no tenant has one twice. In a dry run: as it is now. */
  readonly complete: boolean
  readonly steps: readonly StepReport[]
  /** For the owner of the table. */
  readonly notes: readonly string[]
}

export interface AdoptSettings
  extends Required<Omit<AdoptOptions, keyof TableOptions | 'lockWaitSeconds' | 'signal'>> {
  readonly names: TableNames
  readonly options: TableOptions
  readonly lockWaitMs: number
  readonly signal: AbortSignal | undefined
}

/** Found out by the steps. */
export interface Findings {
  keysFilled: number
  rekeyed: number
  duplicates: Duplicates
  /** In the way of the unique index. */
  duplicatesLeft: boolean
  readonly notes: string[]
}

/** Others hold what a step needs for too long. Nothing is half done; start it again later. */
export class AdoptionBlocked extends Error {
  override readonly name = 'AdoptionBlocked'
}

/** Tries until it is done, steps back ever longer, and gives up after a while. */
export async function patiently<T>(
  { lockWaitMs, signal }: AdoptSettings,
  stepBack: BackoffPolicy,
  attempt: () => T | Promise<T>,
  /** Who is in the way, given the error of this try; null: nobody. */
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

/** A table on its way: its target, its database, what was asked for, and what was found out. */
export interface Adoption extends Target {
  readonly run: RunSql
  readonly change: (sql: string) => Promise<number>
  /** Runs statements as they are printed, and waits in turn with others for what they lock. */
  readonly script: (sql: string) => Promise<void>
  readonly settings: AdoptSettings
  readonly findings: Findings
}

/** The database of an adoption. */
export interface Ground extends Pick<Adoption, 'run' | 'change' | 'script'> {
  readonly dialect: Dialect
  begin(): Promise<void>
  create(): Step
  /** What an existing table needs; refuses one that cannot be adopted. */
  plan(adoption: Adoption): Promise<readonly Step[]>
  close(): Promise<void>
}

/** Does what a step is for. */
export async function carryOut({ sql, run }: Step, script: Ground['script']): Promise<StepOutcome> {
  if (run !== undefined) return run()
  await script(sql)
  return 'done'
}

/** A dry run skips the steps that are needed. */
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
