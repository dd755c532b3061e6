/** Words of an audit: a promise, what breaks it, and what a check works with. */
import type { Instant } from '../../core/clock.ts'
import type { OperationKinds } from '../../history/entry.ts'
import type { Integer, Snapshot, Statement, Value } from '../../store/database.ts'
import type { Drawer } from '../numbers/find-drawers.ts'

export type FoundRow = Readonly<Record<string, Integer | null | undefined>>

export interface Finding {
  readonly what: string
  /** Enough to find the row. null is shown as a dash, undefined not at all. */
  readonly row: FoundRow
}

export interface Invariant {
  /** Invariants with the same id prove one promise in parts. */
  readonly id: string
  readonly promise: string
  /** Own tables in the case files, by name. */
  readonly beside?: Readonly<Record<string, CountedSide>>
  /** Checks case files, in the pass that all checks share. */
  ofLetters?(audit: Audit): LetterCheck | Promise<LetterCheck>
  /** About how many rows `check` reads; left out: few. */
  rows?(audit: Audit): number | Promise<number>
  check?(audit: Audit): AsyncIterable<Finding>
}

export interface LetterCheck {
  look(file: CaseFile): Iterable<Finding>
  end?(): Iterable<Finding> | AsyncIterable<Finding>
}

export interface CaseFile {
  readonly id: number
  /** undefined: gone. */
  readonly letter: FoundRow | undefined
  /** History rows; a letter of a plain queue has its capture apart. */
  readonly transitions: readonly FoundRow[]
  readonly captures: readonly FoundRow[]
  /** Failures that a newer one replaced. */
  readonly relapses: readonly FoundRow[]
  readonly beside: Readonly<Record<string, readonly FoundRow[]>>
}

/** A statement whose rows come in the order of their key. */
export interface Side {
  readonly statement: Statement
  readonly values?: readonly Value[]
  /** Left out: the number in column `key`. */
  readonly keyOf?: (row: FoundRow) => Key
}

export type Key = number | string

/** A table in the case files; its key is the letter's number. */
export interface CountedSide extends Side {
  /** About how many rows; left out: few. */
  rows?(audit: Audit): number | Promise<number>
}

export interface Sizes {
  readonly letters: number
  /** Sent back and not heard of: their items are under way. */
  readonly cases: number
  /** All of it: how much concerns letters is not known beforehand. */
  readonly history: number
}

/** One moment of the store, and what is small enough to be known whole. */
export interface Audit {
  readonly session: Snapshot
  /** By the clock of the servers. */
  readonly now: Instant
  readonly drawers: ReadonlyMap<number, Drawer>
  /** Complete since this instant; retention may have removed older rows. */
  readonly historySince: bigint
  readonly operationKinds: OperationKinds
  /** The operation kind of captures of plain queues; null if there was none yet. */
  readonly plainCaptureKind: number | null
  readonly sizes: Sizes
  /** Notes progress and yields the processor. */
  looked(rows: number): Promise<void>
}
