/** How far somebody is with the first redrive of the demo. Pure. */
import type { Outcomes } from '../api/types.ts'

/** What is remembered from page to page. */
export interface Tour {
  readonly hasOpened: boolean
  readonly hasLooked: boolean
  /** The outcomes before the visitor did anything; null until they are known. */
  readonly before: Pick<Outcomes, 'retried' | 'confirmed'> | null
  readonly isDismissed: boolean
}

export const NEW_TOUR: Tour = { hasOpened: false, hasLooked: false, before: null, isDismissed: false }

export interface Step {
  readonly id: 'open' | 'look' | 'retry' | 'watch'
  readonly isDone: boolean
}

/** The steps; what came later counts for what comes before it, since nobody retries what they have not opened. */
export function stepsOf({ hasOpened, hasLooked, before }: Tour, now: Outcomes | undefined): readonly Step[] {
  const retried = before === null || now === undefined ? 0 : now.retried - before.retried
  const confirmed = before === null || now === undefined ? 0 : now.confirmed - before.confirmed
  return [
    { id: 'open', isDone: hasOpened },
    { id: 'look', isDone: hasLooked },
    { id: 'retry', isDone: retried > 0 },
    { id: 'watch', isDone: retried > 0 && confirmed > 0 && now?.unconfirmed === 0 },
  ]
}

/** The one to do now; null when all are done. */
export const nextOf = (steps: readonly Step[]): Step | null => steps.find(({ isDone }) => !isDone) ?? null

/** A tour as it was stored; a new one where that cannot be read. */
export function readTour(stored: string | null): Tour {
  try {
    // Written by this file; whatever is missing is as in the beginning.
    return { ...NEW_TOUR, ...(JSON.parse(stored ?? '{}') as Partial<Tour>) }
  } catch {
    return NEW_TOUR
  }
}
