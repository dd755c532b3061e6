/** What one try gave: it is done, whatever came of it, or somebody was in the way and another try may do. */
import type { Flying } from './seek.ts'

export type Again =
  /** An event of the service is in flight. */
  | { readonly outcome: 'held'; readonly by: Pick<Flying, 'service' | 'dlqId'> }
  /** One is said to be in flight, by somebody who is gone. */
  | { readonly outcome: 'lapsed'; readonly lapse: Flying }
  /** What was claimed was taken away: it died again meanwhile. */
  | { readonly outcome: 'lost'; readonly from: Pick<Flying, 'service' | 'dlqId'> }

export type Tried<T> = { readonly outcome: 'done'; readonly result: T } | Again

/** Needs no other try. */
export const done = <T>(result: T): Tried<T> => ({ outcome: 'done', result })
