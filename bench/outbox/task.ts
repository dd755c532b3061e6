/** What the parent asks of a child process, and what the child answers. */
import type { Times } from '../figures.ts'
import type { Measurement } from '../task.ts'
import type { Sizes } from './flags.ts'

/** Who moves messages from the table to their receiver. */
export type System =
  /** Ours. */
  | 'dispatcher'
  /** The bare SQL loop. */
  | 'bare'
  /** Nobody: the messages are not in a table, only posted. */
  | 'posts'
  /** pg-transactional-outbox, as it comes and at its best. */
  | 'peer-default'
  | 'peer-best'

export type Receiver = 'function' | 'http'

export interface DispatchRun {
  readonly system: System
  readonly receiver: Receiver
  readonly batchSize: number
  /** How many messages lie there. */
  readonly backlog: number
}

/** What a measurement needs to know beside the store and the sizes. */
export interface Orders {
  readonly writer: object
  readonly dispatch: DispatchRun
  readonly latency: object
  readonly backlog: { readonly backlog: number }
  readonly processed: { readonly rows: number }
}

/** `store` is what `createDispatcher` takes as url; it is empty. */
export type Task = {
  [Part in keyof Orders]: {
    readonly part: Part
    readonly store: string
    readonly sizes: Sizes
    readonly order: Orders[Part]
  }
}[keyof Orders]

/** One comparison of the writer: the same transactions with a plain insert and with the writer. */
export interface WriterFigure {
  readonly what: string
  /** Messages a second. */
  readonly plainPerSecond: number
  readonly writerPerSecond: number
  /** The median over pairs of rounds of how much longer the writer took, in percent. */
  readonly overheadPercent: number
}

export interface BacklogFigure {
  /** Messages a second, at the beginning, in the middle and at the end. */
  readonly firstPerSecond: number
  readonly middlePerSecond: number
  readonly lastPerSecond: number
  /** Memory after the first tenth, and the largest of the second half. */
  readonly earlyRssMb: number
  readonly lateRssMb: number
  readonly peakRssMb: number
}

/** Medians in milliseconds by what was called. */
export type ReadFigures = Readonly<Record<string, number>>

export interface Answers {
  readonly writer: readonly WriterFigure[]
  readonly dispatch: Measurement
  readonly latency: Times
  readonly backlog: BacklogFigure
  readonly processed: ReadFigures
}
