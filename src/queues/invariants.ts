/** What queues promise, and `verify` proves. */
import type { Invariant } from '../letters/audit/invariant.ts'
import { noCopy, oneRetry, sameBytes } from './invariants/letter-items.ts'
import { partitionCounts } from './invariants/partitions.ts'

export const queueInvariants: readonly Invariant[] = [oneRetry, noCopy, partitionCounts, sameBytes]
