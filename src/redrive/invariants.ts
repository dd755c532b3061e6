/** What redrives promise, and `verify` proves. */
import type { Invariant } from '../letters/audit/invariant.ts'
import { captureOrder } from './invariants/capture-order.ts'
import { redriveLanes } from './invariants/lanes.ts'

export const redriveInvariants: readonly Invariant[] = [captureOrder, redriveLanes]
