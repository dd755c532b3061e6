/** The runs of this tab, for whoever shows or steers them. */
import { createContext, useContext } from 'react'
import type { Run, RunPlan } from './run.ts'

export interface Runs {
  /** The newest first. */
  readonly runs: readonly Run[]
  /** A plan is open. */
  readonly isPlanning: boolean
  start(plan: RunPlan): void
  pause(id: string): void
  goOn(id: string): void
  cancel(id: string): void
}

export const RunsContext = createContext<Runs | null>(null)

export function useRuns(): Runs {
  const runs = useContext(RunsContext)
  if (runs === null) throw new Error('there is no RunsProvider above')
  return runs
}
