/** How a screen asks for an act on many letters: it opens the plan, where numbers are shown before anything happens. */
import { createContext, useContext } from 'react'
import type { RedriveAction } from '../api/redrive-types.ts'
import type { LetterFilter, LetterKey } from '../api/types.ts'
import type { Draft } from './plan-draft.ts'

export interface PlanRequest {
  readonly act: RedriveAction
  /** Which letters, as a filter; with `keys`, only these. */
  readonly filter: LetterFilter
  readonly keys?: readonly LetterKey[]
  /** What they have in common, until the plan says it: `letters of "TypeError: …"`. */
  readonly what: string
  /** What the terms begin with, where they are not as usual. */
  readonly draft?: Draft
}

export interface Planning {
  open(request: PlanRequest): void
  /** A plan is open. */
  readonly isOpen: boolean
  /** The redrive that was started last from here; null: none yet. */
  readonly started: string | null
}

export const PlanContext = createContext<Planning | null>(null)

/** Whether a plan is open, and what came of the last one. */
export function usePlanning(): Planning {
  const planning = useContext(PlanContext)
  if (planning === null) throw new Error('there is no PlanProvider above')
  return planning
}

/** Opens a plan. */
export const usePlan = (): Planning['open'] => usePlanning().open
