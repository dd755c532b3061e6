/** The words of an audit: a promise of the store, what breaks it, and what a check gets to work with. */
import type { Instant } from '../../core/clock.ts'
import type { SeriesLabels } from '../../history/entry.ts'
import type { Integer, Snapshot, Statement, Value } from '../../store/database.ts'
import type { Drawer } from '../numbers/find-drawers.ts'

export type FoundRow = Readonly<Record<string, Integer | null | undefined>>

/** Something in the store that must not be. */
export interface Finding {
  /** A sentence that says what is wrong. */
  readonly what: string
  /** The offending row: what is needed to find it. Of it null is shown as a dash, and undefined is not shown. */
  readonly row: FoundRow
}

/** One promise of the store, and what proves it. */
export interface Invariant {
  /** Two of the same id are one promise, which each proves in part. */
  readonly id: string
  /** What holds when nothing is found. */
  readonly promise: string
  /** Tables of its own in the case files of letters, by the names that these give them. */
  readonly beside?: Readonly<Record<string, CountedSide>>
  /** Begins to look at the case files of letters, which all checks look at together. */
  ofLetters?(audit: Audit): LetterCheck | Promise<LetterCheck>
  /** How many rows `check` looks at, as far as that is known beforehand; left out: few. */
  rows?(audit: Audit): number | Promise<number>
  /** Looks at everything else. */
  check?(audit: Audit): AsyncIterable<Finding>
}

export interface LetterCheck {
  /** What is wrong with a letter, or with what is there in its name. */
  look(file: CaseFile): Iterable<Finding>
  /** What is wrong with all of them together. */
  end?(): Iterable<Finding> | AsyncIterable<Finding>
}

/** All that the store has about one letter. */
export interface CaseFile {
  readonly id: number
  /** undefined: it is gone. */
  readonly letter: FoundRow | undefined
  /** What history has of it: transitions, and the capture if it is of a plain queue. */
  readonly transitions: readonly FoundRow[]
  readonly captures: readonly FoundRow[]
  /** Failures that a newer one took the place of. */
  readonly relapses: readonly FoundRow[]
  /** What tables of others have of it. */
  readonly beside: Readonly<Record<string, readonly FoundRow[]>>
}

/** A table beside others: a statement whose rows come in the order of their key. */
export interface Side {
  readonly statement: Statement
  readonly values?: readonly Value[]
  /** Left out: the number that its column `key` is. */
  readonly keyOf?: (row: FoundRow) => Key
}

/** What tables have in common: the number of a letter, or an id. */
export type Key = number | string

/** A table in the case files of letters: its key is their number. */
export interface CountedSide extends Side {
  /** How many rows it has, nearly; left out: few. */
  rows?(audit: Audit): number | Promise<number>
}

/** About how many rows there are. */
export interface Sizes {
  readonly letters: number
  /** Letters that were sent back and not heard of: their items are on their way. */
  readonly cases: number
  /** All of history: how much of it concerns letters is not known beforehand. */
  readonly history: number
}

/** What all checks share: one moment of the store, and what is small enough to be known whole. */
export interface Audit {
  readonly session: Snapshot
  /** The time of the check, by the clock of the servers. */
  readonly now: Instant
  /** By their numbers. */
  readonly drawers: ReadonlyMap<number, Drawer>
  /** History has every row since this instant; retention may have removed older ones. */
  readonly historySince: bigint
  /** What the numbers of series in history stand for. */
  readonly series: SeriesLabels
  /** The series of history whose rows are the captures of plain queues; null when there was none yet. */
  readonly plainSeries: number | null
  readonly sizes: Sizes
  /** Notes progress, and lets others use the processor. */
  looked(rows: number): Promise<void>
}
