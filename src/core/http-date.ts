/** Instants as HTTP dates, such as `Sun, 15 Nov 2026 01:08:28 GMT`: whole seconds, cut down and never rounded. */
import type { Instant } from './clock.ts'

/** The HTTP date of the second in which `at` lies. */
export function formatHttpDate(at: Instant): string {
  // The remainder of a negative instant is negative too; the floor lies below it.
  const rest = at % 1_000_000n
  const seconds = (at - rest) / 1_000_000n - (rest < 0n ? 1n : 0n)
  return new Date(Number(seconds) * 1_000).toUTCString()
}
