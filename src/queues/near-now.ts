import { type Instant, later } from '../core/clock.ts'

/** An item that shall be queued in less than this is queued at once. */
const NEAR_NOW_US = 100_000n

/** Whether `at` is past or so close that scheduling is not worth it. */
export const isNearNow = (at: Instant, now: Instant): boolean => at < later(now, NEAR_NOW_US)
