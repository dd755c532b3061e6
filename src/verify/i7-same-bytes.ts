/** I7: the item of a retry that nobody edited carries the letter's payload, byte for byte. */
import { itemRow } from './audit.ts'
import type { Invariant } from './invariant.ts'
import { CASES, fault, faultsAlong } from './walk.ts'

/** Items of a range of cases that differ from their letters: compared by the store, payloads do not travel. No payload is stored as NULL. */
const differing = (none: string): string =>
  `SELECT item.part, item.id AS serial, letter.id AS letter, letter.engine,
     coalesce(length(letter.payload), 0) AS "letterBytes", coalesce(length(item.payload), 0) AS "itemBytes"
   FROM bartleby.items AS item JOIN bartleby.letters AS letter ON letter.id = item.case_id
   WHERE item.case_id > $1 AND item.case_id <= $2 AND letter.id > $1 AND letter.id <= $2 AND letter.edited = 0
     AND coalesce(item.payload, ${none}) <> coalesce(letter.payload, ${none})`

const differingBytes = fault(
  'differingBytes',
  { postgres: differing(`''`), sqlite: differing(`x''`) },
  ({ part, serial, ...row }, audit) => ({
    what: `the item of letter ${row.letter} has another payload, and nobody edited it`,
    row: { ...row, ...itemRow(audit, part, serial) },
  }),
)

export const sameBytes: Invariant = {
  id: 'I7',
  promise: 'an unedited retry carries the bytes of its letter',
  rows: ({ cases }) => cases,
  check: (audit) => faultsAlong(audit, CASES, [differingBytes]),
}
