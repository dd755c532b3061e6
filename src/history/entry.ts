/** What history shows: entries as lists and details have them, and what lists are filtered by. */
import type { Instant } from '../core/clock.ts'
import type { Session } from '../db/database.ts'
import type { HistoryStatus } from './record.ts'

/** An entry as lists show it: without input and output. */
export interface HistorySummary {
  readonly engine: string
  readonly rowKey: string
  readonly instanceId: string
  readonly operation: string
  readonly status: HistoryStatus
  readonly durationMs: number
  readonly createdAt: Instant
  readonly correlationId: string
  /** Who did it; null where nobody is named. */
  readonly actor: string | null
}

/** An entry with everything that is known about it. */
export interface HistoryDetail extends HistorySummary {
  readonly input: Uint8Array | null
  readonly output: Uint8Array | null
  readonly error: string | null
  readonly notes: string | null
  /** The letter it concerns; null when there is none, or none any more. */
  readonly letter: { readonly engine: string; readonly rowKey: string } | null
}

/** Which entries; what is given must all hold. */
export interface HistoryFilter {
  readonly engine?: string | null
  readonly operation?: string | null
  readonly status?: HistoryStatus | null
  readonly instanceId?: string | null
  readonly correlationId?: string | null
  /** `from` ≤ the time of the entry < `to`. */
  readonly from?: Instant | null
  readonly to?: Instant | null
}

export interface HistoryPage {
  readonly items: readonly HistorySummary[]
  /** Asks for the page after this one; null on the last. */
  readonly continuationToken: string | null
}

/** The engines and operations that there are; each check refuses with the reason or with the list of what is known. */
export interface KnownEngines {
  /** One that runs may be recorded of. */
  check(engine: string): void
  /** An operation of the engine itself. */
  checkOwnOperation(engine: string, operation: string): void
  /** One to look for. */
  checkKnown(engine: string, session?: Session): Promise<void>
  /** An operation to look for, of the engine, or of any when none is named. */
  checkKnownOperation(engine: string | null, operation: string): Promise<void>
}
