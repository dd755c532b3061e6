/** I6: the books are exact: every count, of letters and of what lies in the queues, is what counting gives; activity agrees. */
import type { Invariant } from './invariant.ts'
import { letterActivity } from './letter-activity.ts'
import { letterCounts } from './letter-counts.ts'
import { partitionCounts } from './partition-counts.ts'

export const counts: Invariant = {
  id: 'I6',
  promise: 'every count is what counting gives',
  rows: ({ letters, items }) => 2 * letters + items,
  async *check(audit) {
    yield* letterCounts(audit)
    yield* letterActivity(audit)
    yield* partitionCounts(audit)
  },
}
