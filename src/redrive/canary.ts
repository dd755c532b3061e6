/** The canary: a few letters go first, and the others only when enough of these were confirmed. */
import type { Verdict } from './ending.ts'
import type { Canary, RedriveCounts } from './redrive.ts'

/** How many of its letters are still to be sent. */
export const leftOfCanary = ({ letters }: Canary, sent: number): number => Math.max(0, letters - sent)

/** Whether all of its letters were sent: as many as it has, or all there are. */
export const isCanarySent = ({ letters }: Canary, { sent, remaining }: RedriveCounts): boolean =>
  sent >= letters || remaining === 0

/** What its outcomes say, `waitedUs` after the last was sent; null: nothing yet. */
export function canaryVerdict(canary: Canary, counts: RedriveCounts, waitedUs: bigint): Verdict | null {
  const { sent, confirmed, returned } = counts
  const needed = Math.ceil((sent * canary.confirmPercent) / 100)
  if (confirmed >= needed) return { state: 'running', note: null }
  const soFar = `of ${sent} letters that went first ${confirmed} were confirmed and ${returned} came back, ${needed} must be confirmed`
  if (returned > sent - needed) return { state: 'stopped', note: soFar }
  if (waitedUs < BigInt(Math.round(canary.waitSeconds * 1e6))) return null
  return { state: 'paused', note: `${soFar}; nothing was heard of the others for ${canary.waitSeconds} s` }
}
