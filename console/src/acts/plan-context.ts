/** How a screen asks for an act on many letters: it opens the plan, where numbers are shown before anything happens. */
import { createContext, useContext } from 'react'
import type { LetterFilter, LetterKey } from '../api/types.ts'

export interface PlanRequest {
  readonly act: 'retry' | 'discard' | 'restore'
  /** Which letters, as a filter; with `keys`, only these of them. */
  readonly filter: LetterFilter
  readonly keys?: readonly LetterKey[]
  /** What they have in common, for the sentence: `letters of "TypeError: …"`. */
  readonly what: string
}

export const PlanContext = createContext<((request: PlanRequest) => void) | null>(null)

/** Opens a plan. */
export function usePlan(): (request: PlanRequest) => void {
  const open = useContext(PlanContext)
  if (open === null) throw new Error('there is no RunsProvider above')
  return open
}
