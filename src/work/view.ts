import { viewOf } from '../api/view.ts'
import type { Run } from './run-rows.ts'
import { RUN, type RunItem } from './shapes.ts'

/** More digits than are known would change at every look. */
export const measuredRate = (rate: number | null): number | null =>
  rate === null ? null : Number(rate.toPrecision(3))

const runOnWire = viewOf(RUN)

export function runFields(run: Run): RunItem {
  const { expected, done, skipped, failed, rateNow } = run
  const remaining = expected === null ? null : Math.max(0, expected - done - skipped - failed)
  const isUnderWay = run.state === 'running' && rateNow !== null && rateNow > 0
  return runOnWire({
    ...run,
    counts: { expected, done, skipped, failed, remaining },
    startedBy: run.actor,
    // No kind waits for an instant; clients know the field.
    dueAt: null,
    isHeld: run.owner !== null,
    rateNow: measuredRate(rateNow),
    secondsLeft: isUnderWay && remaining !== null ? Math.ceil(remaining / rateNow) : null,
  })
}
