/** What the parent asks of a child process, and what the child answers. */
import type { Times } from '../figures.ts'
import type { Measurement } from '../task.ts'
import type { Books } from './books.ts'
import type { Sizes } from './flags.ts'

/** What a measurement needs to know beside the store and the sizes. */
export interface Orders {
  readonly deliver: { readonly consumers: number }
  readonly backlog: object
  readonly hang: { readonly hanging: number }
  readonly 'dlq-status': { readonly dead: number }
  readonly bulk: { readonly act: BulkAct }
}

export const bulkActs = ['purge', 'requeue'] as const
export type BulkAct = (typeof bulkActs)[number]

/** `store` is what `bartleby serve` takes; it is empty. */
export type Task = {
  [Part in keyof Orders]: {
    readonly part: Part
    readonly store: string
    readonly sizes: Sizes
    readonly order: Orders[Part]
  }
}[keyof Orders]

export interface DeliverFigure {
  readonly messages: number
  /** Callbacks a second, from the first broadcast to the last arrival. */
  readonly perSecond: number
  /** The same posts to the same receiver from a loop that keeps nothing. */
  readonly floorPerSecond: number
  /** Answers 201 a second while that was so. */
  readonly broadcastsPerSecond: number
  /** From the broadcast to the arrival, at a steady rate. */
  readonly way: Times
  readonly messagesPerSecond: number
  /** WAL, transactions, CPU and memory of the saturated stretch, per delivery. */
  readonly costs: Measurement
  readonly books: Books
}

export interface BacklogFigure {
  /** Broadcasts that were answered 201, by what waited and where they went. */
  readonly answers: readonly { readonly what: string; readonly beside: boolean; readonly times: Times }[]
  /** Ways to the healthy consumer with nothing waiting, and beside what waits. */
  readonly ways: { readonly before: Times; readonly beside: Times }
  /** Deliveries that waited when that began, and when it ended. */
  readonly waiting: readonly [number, number]
  readonly serverPeakRssMb: number
  readonly books: Books
}

export interface HangFigure {
  readonly perSecond: number
  /** Attempts that hung when the clock started. */
  readonly hung: number
  readonly books: Books
}

export interface DlqStatusFigure {
  readonly loadSeconds: number
  readonly reads: Readonly<Record<string, Times>>
  readonly serverPeakRssMb: number
  readonly books: Books
}

export interface BulkFigure {
  readonly jobs: number
  readonly perSecond: number
  /** The call was answered, however long it took. */
  readonly isAnswered: boolean
  /** Deliveries to the other consumer. */
  readonly before: Beside
  readonly during: Beside
  readonly rssBeforeMb: number
  readonly rssAfterMb: number
  readonly books: Books
}

/** How a consumer fares while something else happens. */
export interface Beside {
  readonly perSecond: number
  readonly way: Times
}

export interface Answers {
  readonly deliver: DeliverFigure
  readonly backlog: BacklogFigure
  readonly hang: HangFigure
  readonly 'dlq-status': DlqStatusFigure
  readonly bulk: BulkFigure
}
