/** A redrive as it may stand, for tests of what is said and shown of it. */
import { instant } from '../../src/core/clock.ts'
import { xid } from '../../src/core/xid.ts'
import type { Redrive, RedriveCounts, RedriveStanding, Terms } from '../../src/redrive/redrive.ts'
import { redriveNumber } from '../../src/redrive/redrive.ts'

type Changes = Partial<Omit<Redrive, 'terms' | 'numbers'>> & {
  readonly terms?: Partial<Terms>
  readonly numbers?: Partial<Redrive['numbers']>
  /** What is not given follows from what is. */
  readonly counts?: Partial<RedriveCounts>
  readonly rateNow?: number | null
  readonly secondsLeft?: number | null
}

const PLANNED_AT = instant(1_800_000_000_000_000n)

/** A plan of 1,204 letters to be sent back, with the changes that a test needs. */
export function redriveAt({ terms, numbers, counts, ...changes }: Changes = {}): RedriveStanding {
  const { planned = 1_204, sent = 0, skipped = 0, failed = 0, confirmed = 0, returned = 0 } = counts ?? {}
  return {
    number: redriveNumber(1),
    id: xid('c00000000000000000g0'),
    state: 'planned',
    resumesAs: null,
    action: 'retry',
    queue: null,
    selection: { by: 'filter', filter: {} },
    numbers: {
      matched: planned,
      eligible: planned,
      inFlight: 0,
      noDestination: 0,
      orderBlocked: 0,
      duplicate: 0,
      invalid: 0,
      ...numbers,
    },
    terms: { rate: null, canary: null, stopRule: null, order: 'key', ...terms },
    recipe: null,
    reason: null,
    plannedBy: 'nell',
    plannedAt: PLANNED_AT,
    validUntil: instant(PLANNED_AT + 1_800_000_000n),
    startedBy: null,
    startedAt: null,
    endedAt: null,
    note: null,
    resumed: 0,
    isHeld: false,
    rateNow: null,
    secondsLeft: null,
    ...changes,
    counts: {
      planned,
      sent,
      skipped,
      failed,
      remaining: planned - sent - skipped - failed,
      confirmed,
      returned,
      unconfirmed: sent - confirmed - returned,
    },
  }
}
