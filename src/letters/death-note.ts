/** What is known about a death, in a form that fits the store: cut, cleaned, with its drawer and its history. */
import type { Instant } from '../core/clock.ts'
import type { SeriesNumbers } from '../history/record.ts'
import type { Cause } from './bury.ts'
import type { Drawers } from './drawers.ts'

/** The registers that every capture looks numbers up in. */
export interface Registers {
  readonly drawers: Drawers
  readonly series: SeriesNumbers
}

/** What is written about a death, with its numbers. */
export interface DeathNote extends Omit<Cause, 'record'> {
  /** null: it has none, its source id stands for it. */
  readonly instanceId: string | null
  readonly correlationId: string | null
  readonly reportedCount?: number
  readonly record: Omit<Cause['record'], 'captured' | 'reopened'> & { readonly operation: string }
  readonly drawer: number
  readonly series: number
  readonly capturedAt: Instant
  readonly firstFailureAt: Instant
  readonly lastFailureAt: Instant
}
