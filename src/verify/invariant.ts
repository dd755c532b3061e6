/** The words of verify: a promise of the store, what breaks it, and what a check gets to work with. */
import type { Instant } from '../core/clock.ts'
import type { SeriesLabels } from '../history/entry.ts'
import type { Drawer } from '../letters/drawers.ts'
import type { Integer, Snapshot } from '../store/database.ts'

/** Something in the store that must not be. */
export interface Violation {
  /** The promise that is broken: 'I6'. */
  readonly invariant: string
  /** A sentence that says what is wrong. */
  readonly what: string
  /** The offending row: what is needed to find it. */
  readonly row: Readonly<Record<string, string>>
}

/** A row as the store gives it. */
export type FoundRow = Readonly<Record<string, Integer | null | undefined>>

/** A violation as a check gives it. Of its row, null is shown as a dash, and undefined is not shown. */
export interface Finding {
  readonly what: string
  readonly row: FoundRow
}

/** One promise of the store, and what proves it. */
export interface Invariant {
  readonly id: string
  /** What holds when nothing is found. */
  readonly promise: string
  /** Begins to look at the case files of letters, which all checks look at together. */
  ofLetters?(audit: Audit): LetterCheck | Promise<LetterCheck>
  /** How many rows `check` looks at, as far as that is known beforehand; left out: few. */
  rows?(sizes: Sizes): number
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
  /** Items on their way. */
  readonly items: readonly FoundRow[]
  /** Its places in redrives, and which of these left it out. */
  readonly members: readonly FoundRow[]
  readonly notes: readonly FoundRow[]
}

/** About how many rows there are. */
export interface Sizes {
  readonly letters: number
  readonly items: number
  /** Letters that were sent back and not heard of: their items are on their way. */
  readonly cases: number
  /** All of history: how much of it concerns letters is not known beforehand. */
  readonly history: number
  /** Letters of redrives; one that is in two counts twice. */
  readonly redriven: number
  /** Of webhooks. */
  readonly jobs: number
  readonly messages: number
}

/** A partition and its queue. */
export interface Shelving {
  readonly queue: string
  readonly number: number
  readonly idPrefix: string
}

/** What all checks share: one moment of the store, and what is small enough to be known whole. */
export interface Audit {
  readonly session: Snapshot
  /** The time of the check, by the clock of the servers. */
  readonly now: Instant
  /** By their numbers. */
  readonly drawers: ReadonlyMap<number, Drawer>
  /** By their parts. Parts of deleted queues are not among them. */
  readonly partitions: ReadonlyMap<number, Shelving>
  /** History has every row since this instant; retention may have removed older ones. */
  readonly historySince: bigint
  /** What the numbers of series in history stand for. */
  readonly series: SeriesLabels
  /** The series of history whose rows are the captures of plain queues; null when there was none yet. */
  readonly plainSeries: number | null
  /** Notes progress, and lets others use the processor. */
  looked(rows: number): Promise<void>
}
