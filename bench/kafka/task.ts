/** What the parent asks of a child process, and what the child answers. */

export type Task =
  | {
      readonly act: 'bare'
      readonly bootstrap: string
      readonly topic: string
      readonly group: string
      readonly events: number
    }
  | {
      readonly act: 'intake'
      readonly bootstrap: string
      readonly topic: string
      readonly group: string
      readonly events: number
      readonly store: string
    }
  | { readonly act: 'load'; readonly store: string; readonly letters: number }

/** How fast it went, and how much memory it took at most and at the end. */
export interface Rate {
  readonly perSecond: number
  readonly peakRssMb: number
}
