/**
 * I4: a letter has at most one item on its way, and only while it is resolved by that retry and waits for the outcome.
 * An item of a letter that is pending again, discarded or confirmed would be worked on a second time.
 */
import { STATUS, STATUSES } from '../letters/letter.ts'
import { isLive, itemRow } from './audit.ts'
import type { FoundRow, Invariant } from './invariant.ts'
import { CASES, together } from './walk.ts'

export const oneRetry: Invariant = {
  id: 'I4',
  promise: 'a letter has at most one item on its way, and waits for it',
  rows: ({ cases }) => cases,
  async *check(audit) {
    for await (const { key: letter, items } of together(audit, { items: CASES })) {
      if (items.length > 1)
        yield {
          what: `${items.length} items carry the case of letter ${letter}`,
          row: { letter, items: items.length },
        }
      for (const item of items) {
        if (!isStray(item) || !isLive(audit, item.part)) continue
        const { part, serial, engine, resolution } = item
        const status = STATUSES[Number(item.status)] ?? item.status
        yield {
          what: `letter ${letter} is ${status} and does not wait for the item of its retry, which lives`,
          row: { letter, engine, status, resolution, ...itemRow(audit, part, serial) },
        }
      }
    }
  },
}

/** Whether the letter of an item, to which more happened than its capture, does not wait for it. */
const isStray = ({ letter, version, status, resolution, confirmed_at }: FoundRow): boolean =>
  letter !== null &&
  Number(version) > 1 &&
  (Number(status) !== STATUS.Resolved || resolution !== 'retry' || confirmed_at !== null)
