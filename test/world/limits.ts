/**
 * Sizes and patience of all tests. `npm test` runs crash, model, count and walk tests in small; `npm run prove` sets
 * BARTLEBY_PROVE=1 and runs them in full. Waiting has one limit: on an idle machine the fact comes at once, on a busy
 * one late, and a limit of a test's own would only say how busy the machine was.
 */
export const isProof = process.env.BARTLEBY_PROVE === '1'

/** How often or how many: the daily size, or the full one of `npm run prove`. */
export function sizeOf<T>(daily: T, full: T): T {
  return isProof ? full : daily
}

/** The longest a single fact is waited for. */
export const PATIENCE_MS = sizeOf(90_000, 900_000)

/** SIGTERM to the end of the process, as docs/operations.md promises; a stop that waits for nothing keeps it on a busy machine too. */
export const STOP_PROMISED_MS = 10_000

/** The longest a whole test, or a hook around it, may take. */
export const TEST_LIMIT_MS = sizeOf(300_000, 2_400_000)
