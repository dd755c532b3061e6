/**
 * Adoption is a list of steps. Each knows its SQL before it runs, whether it is still needed, and can be run again
 * after whatever became of it: that makes the dry run, and going on after a kill, the same list.
 */
import type { Dialect } from '../../db/database.ts'
import type { RunSql } from '../layout.ts'
import type { AdoptSettings, Findings, StepOutcome, StepReport } from './report.ts'
import type { Target } from './target.ts'

export interface Step {
  readonly what: string
  readonly sql: string
  /** False when the table has it already. Reads only. */
  needed(): boolean | Promise<boolean>
  run(): Promise<StepOutcome>
}

/** A step that sends its SQL as it is printed. */
export const scriptStep = (
  what: string,
  sql: string,
  needed: Step['needed'],
  send: (sql: string) => Promise<unknown>,
): Step => ({
  what,
  sql,
  needed,
  async run() {
    await send(sql)
    return 'done'
  },
})

/** One database, opened to adopt a table in it. */
export interface Ground {
  readonly dialect: Dialect
  readonly run: RunSql
  /** Makes sure that no other adoption of the table runs. */
  begin(): Promise<void>
  /** Makes the table, where there is none. */
  create(): Step
  /** What a table that exists needs; refuses one that cannot be adopted here. */
  plan(target: Target, findings: Findings): Promise<readonly Step[]>
  close(): Promise<void>
}

/** Runs the steps that are needed, one after the other; a dry run skips them. */
export async function runPlan(
  steps: readonly Step[],
  { dryRun, onStep, signal }: AdoptSettings,
): Promise<readonly StepReport[]> {
  const reports: StepReport[] = []
  for (const step of steps) {
    signal?.throwIfAborted()
    const outcome = !(await step.needed()) ? 'already there' : dryRun ? 'skipped' : await step.run()
    const report: StepReport = { what: step.what, sql: step.sql, outcome }
    reports.push(report)
    onStep(report)
  }
  return reports
}
