/**
 * Adoption is a list of steps. Each knows its SQL before it runs, whether it is still needed, and can be run again
 * after whatever became of it: that makes the dry run, and going on after a kill, the same list.
 */
import type { AdoptSettings, StepOutcome, StepReport } from './report.ts'

export interface Step {
  readonly what: string
  readonly sql: string
  /** False when the table has it already. Reads only. */
  needed(): boolean | Promise<boolean>
  run(): Promise<StepOutcome>
}

/** Runs the steps that are needed, one after the other; a dry run skips them. */
export async function runPlan(
  steps: readonly Step[],
  { dryRun, onStep, signal }: AdoptSettings,
): Promise<readonly StepReport[]> {
  const reports: StepReport[] = []
  for (const step of steps) {
    signal?.throwIfAborted()
    const outcome = await outcomeOf(step, dryRun)
    const report = { what: step.what, sql: step.sql, outcome }
    reports.push(report)
    onStep(report)
  }
  return reports
}

async function outcomeOf(step: Step, dryRun: boolean): Promise<StepOutcome> {
  if (!(await step.needed())) return 'already there'
  return dryRun ? 'skipped' : step.run()
}
