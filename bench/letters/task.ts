/** What the parent asks of a child process, and what the child answers. */
import type { Sizes } from './flags.ts'
import type { Figure } from './measure.ts'

export interface Task {
  /** What `Office.open` takes; the store is empty. */
  readonly store: string
  readonly letters: number
  readonly expire: boolean
  readonly sizes: Sizes
}

export interface Outcome {
  readonly figures: readonly Figure[]
  /** Letters at the end, as counted by the store and by the office alike. */
  readonly reconciled: number
  readonly peakRssMb: number
}
