/** The bounds of repairs: what one letter may cost, and what all letters of a plan together. */

/** More bytes than this no payload has, before its repair and after it. */
export const MOST_PAYLOAD_BYTES = 16 * 1_048_576
/** Work on one letter. */
export const LETTER_MS = 1_000

/** What is said of a letter whose repair gives more. */
export const TOO_LARGE = 'the payload would be larger than 16 MiB'
/** What is said of a letter whose time is up. */
export const TOO_LONG = `the repair took longer than ${LETTER_MS / 1_000} s`
/** What is said of a letter whose repair was ended by the bounds of its process. */
export const TOO_MUCH_MEMORY = 'the repair used too much memory'

/** What the letters of a plan may cost together. */
export interface PlanBounds {
  /** Letters that take too long or too much memory: each of them costs a second, or a process. */
  readonly broken: number
  /** Work on all letters. A million letters of a kilobyte and a simple mapping take two minutes. */
  readonly workMs: number
  /** By how much all payloads together may grow: the edits are kept in the store. */
  readonly growthBytes: number
}

export const PLAN_BOUNDS: PlanBounds = { broken: 10, workMs: 300_000, growthBytes: 1_073_741_824 }
