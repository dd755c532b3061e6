/** What the parent asks of a child process, and what the child answers. */

/** Where letters come from and go back to. */
export const sources = ['queues', 'webhooks', 'outbox'] as const
export type Source = (typeof sources)[number]

export type Task =
  /** Fills an empty store with pending letters, in plain queues or with this many keys. */
  | { readonly act: 'load'; readonly store: string; readonly letters: number; readonly keys: number | null }
  /** Plans all letters and sends them as fast as it goes. */
  | { readonly act: 'run'; readonly store: string }
  /** Bare SQL that does the same in tables of its own. */
  | { readonly act: 'bare'; readonly store: string; readonly letters: number }
  /** Loads letters of one source and sends them back as fast as it goes. */
  | { readonly act: 'source'; readonly store: string; readonly from: Source; readonly letters: number }
  | { readonly act: 'live'; readonly store: string; readonly seconds: number }
  | { readonly act: 'cancel'; readonly store: string; readonly times: number }
  | {
      readonly act: 'rate'
      readonly store: string
      readonly rate: number
      readonly windowSeconds: number
    }

export type TaskOf<Act extends Task['act']> = Extract<Task, { readonly act: Act }>

export interface LoadFigure {
  readonly seconds: number
}

/** Of the process that makes the plan and carries it out, in MB. */
export interface Memory {
  readonly atStart: number
  readonly ofPlan: number
  readonly ofFirstHalf: number
  readonly ofSecondHalf: number
  /** The most that it ever took. */
  readonly peak: number
}

export interface RunFigure {
  readonly letters: number
  readonly planSeconds: number
  readonly perSecond: number
  /** Null on SQLite, as is that of the plan. */
  readonly walBytes: number | null
  readonly planWalBytes: number | null
  readonly memory: Memory
  readonly books: Books
}

export interface SourceFigure {
  readonly perSecond: number
}

export interface BareFigure {
  readonly perSecond: number
  readonly walBytes: number | null
}

/** What somebody else got done meanwhile. */
export interface Traffic {
  readonly itemsPerSecond: number
  /** Of all calls. */
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface LiveFigure {
  readonly alone: Traffic
  readonly beside: Traffic
  /** Of the redrive beside the traffic. */
  readonly lettersPerSecond: number
  readonly books: Books
}

export interface CancelFigure {
  /** From the call to its return, each. */
  readonly tookMs: readonly number[]
  /** Letters that arrived in the queue after the calls had returned. */
  readonly sentAfter: number
  readonly books: Books
}

export interface RateFigure {
  /** Letters in each window, as the queue has them. */
  readonly windows: readonly number[]
  readonly expected: number
  readonly books: Books
}

/** Letters as the redrives tell it and as they lie there: all four are the same, or the measurement has failed. */
export interface Books {
  readonly sent: number
  readonly items: number
  readonly resolved: number
  readonly retries: number
  /** How long it took to check all promises of the store, which it keeps. */
  readonly verifySeconds: number
}

export interface Answers {
  readonly load: LoadFigure
  readonly run: RunFigure
  readonly bare: BareFigure
  readonly source: SourceFigure
  readonly live: LiveFigure
  readonly cancel: CancelFigure
  readonly rate: RateFigure
}
