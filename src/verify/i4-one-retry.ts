/**
 * I4: a letter has at most one item on its way, and only while it is resolved by that retry and waits for the outcome.
 * An item of a letter that is pending again, discarded or confirmed would be worked on a second time.
 */
import { STATUS, STATUSES } from '../letters/letter.ts'
import { isLive, itemRow } from './audit.ts'
import type { FoundRow, Invariant } from './invariant.ts'

export const oneRetry: Invariant = {
  id: 'I4',
  promise: 'a letter has at most one item on its way, and waits for it',
  ofLetters: (audit) => ({
    *look({ id, letter, items }) {
      if (items.length > 1)
        yield {
          what: `${items.length} items carry the case of letter ${id}`,
          row: { letter: id, items: items.length },
        }
      if (items.length === 0 || letter === undefined || isWaiting(letter)) return
      const { engine, resolution } = letter
      const status = STATUSES[Number(letter.status)] ?? letter.status
      for (const { part, serial } of items)
        if (isLive(audit, part))
          yield {
            what: `letter ${id} is ${status} and does not wait for the item of its retry, which lives`,
            row: { letter: id, engine, status, resolution, ...itemRow(audit, part, serial) },
          }
    },
  }),
  rows: () => 0,
}

/** Whether a letter waits for the item of its retry; one that has seen its capture only is for I5 to judge. */
const isWaiting = ({ version, status, resolution, confirmed_at }: FoundRow): boolean =>
  Number(version) === 1 ||
  (Number(status) === STATUS.Resolved && resolution === 'retry' && confirmed_at === null)
