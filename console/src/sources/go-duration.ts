/** Durations as the queue API writes them, for people. */
import { parseGoDuration } from '../../../src/core/duration.ts'
import { duration } from '../time/format.ts'

/** `24h0m0s` as `24h`: without the units that are zero. */
export const shortDuration = (text: string): string =>
  text.replace(/(?<=[hm])0s$/, '').replace(/(?<=h)0m$/, '')

/** `20.149064s` as `20.1 s`; what is no duration stays as it is. */
export function roundDuration(text: string): string {
  const parsed = parseGoDuration(text)
  return parsed.ok ? duration(Number(parsed.ns / 1_000_000n)) : text
}
