/** I7: the item of a retry that nobody edited carries the letter's payload, byte for byte. */
import { itemRow } from './audit.ts'
import type { Invariant } from './invariant.ts'
import { batchesOf, read } from './walk.ts'

const bytes = (table: string): string => `coalesce(length(${table}.payload), 0)`

/** Compared by the store, payloads do not travel. No payload is stored as NULL or as no bytes. */
const readBytes = read(
  'casePayloads',
  `SELECT item.part, item.id AS serial, letter.id AS letter, letter.engine, ${bytes('letter')} AS "letterBytes", ${bytes('item')} AS "itemBytes",
     CASE WHEN item.payload <> letter.payload OR ${bytes('item')} <> ${bytes('letter')} THEN 1 ELSE 0 END AS differs
   FROM bartleby.items AS item JOIN bartleby.letters AS letter ON letter.id = item.case_id
   WHERE item.case_id IS NOT NULL AND letter.edited = 0`,
)

export const sameBytes: Invariant = {
  id: 'I7',
  promise: 'an unedited retry carries the bytes of its letter',
  rows: ({ cases }) => cases,
  async *check(audit) {
    for await (const rows of batchesOf(audit, readBytes)) {
      for (const { part, serial, letter, engine, letterBytes, itemBytes, differs } of rows)
        if (Number(differs) === 1)
          yield {
            what: `the item of letter ${letter} has another payload, and nobody edited it`,
            row: { letter, engine, letterBytes, itemBytes, ...itemRow(audit, part, serial) },
          }
    }
  },
}
