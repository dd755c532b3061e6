/** What the parent asks of a child process, and what the child answers. */

import type { Figure } from '../figures.ts'
import type { Sizes } from './flags.ts'
import type { Plans } from './plans.ts'

export interface Task {
  /** What `Office.open` takes; the store is empty. */
  readonly store: string
  readonly letters: number
  readonly expire: boolean
  /** The figures with the fewest letters, if there are any: the plans of what has grown since are told. */
  readonly fewest: readonly Figure[]
  readonly sizes: Sizes
}

export interface Outcome {
  readonly figures: readonly Figure[]
  readonly plans: readonly Plans[]
  /** Letters at the end, as counted by the store and by the office alike. */
  readonly reconciled: number
  readonly peakRssMb: number
}
