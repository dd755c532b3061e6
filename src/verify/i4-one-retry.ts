/**
 * I4: a letter has at most one item on its way, and only while it is resolved by that retry and waits for the outcome.
 * An item of a letter that is pending again, discarded or confirmed would be worked on a second time.
 */
import { STATUS, STATUSES } from '../letters/letter.ts'
import { isLive, itemRow } from './audit.ts'
import type { Invariant } from './invariant.ts'
import { CASES, fault, faultsAlong } from './walk.ts'

/** Cases of a range that more than one item has, on the index of cases. */
const sharedCases = fault(
  'sharedCases',
  `SELECT case_id AS letter, count(*) AS items FROM bartleby.items WHERE case_id > $1 AND case_id <= $2
   GROUP BY case_id HAVING count(*) > 1`,
  ({ letter, items }) => `${items} items carry the case of letter ${letter}`,
)

/** Items of a range of cases whose letter does not wait for them: one look at a letter for each. */
const strayRetries = fault(
  'strayRetries',
  `SELECT item.part, item.id AS serial, letter.id AS letter, letter.engine, letter.status, letter.resolution
   FROM bartleby.items AS item JOIN bartleby.letters AS letter ON letter.id = item.case_id
   WHERE item.case_id > $1 AND item.case_id <= $2 AND letter.id > $1 AND letter.id <= $2 AND letter.version > 1
     AND (letter.status <> ${STATUS.Resolved} OR letter.resolution IS NULL OR letter.resolution <> 'retry'
       OR letter.confirmed_at IS NOT NULL)`,
  ({ part, serial, ...letter }, audit) => {
    if (!isLive(audit, part)) return []
    const status = STATUSES[Number(letter.status)] ?? letter.status
    return {
      what: `letter ${letter.letter} is ${status} and does not wait for the item of its retry, which lives`,
      row: { ...letter, status, ...itemRow(audit, part, serial) },
    }
  },
)

export const oneRetry: Invariant = {
  id: 'I4',
  promise: 'a letter has at most one item on its way, and waits for it',
  rows: ({ cases }) => cases,
  check: (audit) => faultsAlong(audit, CASES, [sharedCases, strayRetries]),
}
