/** I7: the item of a retry that nobody edited carries the letter's payload, byte for byte. */
import { type Integer, sql } from '../db/database.ts'
import { itemRow } from './audit.ts'
import type { Invariant } from './invariant.ts'
import { caseRanges } from './walk.ts'

/** Items of a range of cases that differ from their letters: compared by the store, payloads do not travel. */
const differing = (different: string): string =>
  `SELECT item.part, item.id AS serial, letter.id AS letter_id, letter.engine,
     coalesce(length(item.payload), 0) AS item_bytes, coalesce(length(letter.payload), 0) AS letter_bytes
   FROM bartleby.items AS item JOIN bartleby.letters AS letter ON letter.id = item.case_id
   WHERE item.case_id > $1 AND item.case_id <= $2 AND letter.id > $1 AND letter.id <= $2 AND letter.edited = 0 AND ${different}`

const readDiffering = sql(
  'verify.differingBytes',
  {
    // No payload is stored as NULL.
    postgres: differing(`coalesce(item.payload, '') <> coalesce(letter.payload, '')`),
    sqlite: differing(`coalesce(item.payload, x'') <> coalesce(letter.payload, x'')`),
  },
  { bigints: true },
)

interface DifferingRow {
  readonly part: Integer
  readonly serial: Integer
  readonly letter_id: Integer
  readonly engine: string
  readonly item_bytes: Integer
  readonly letter_bytes: Integer
}

export const sameBytes: Invariant = {
  id: 'I7',
  promise: 'an unedited retry carries the bytes of its letter',
  rows: ({ cases }) => cases,
  async *check(audit) {
    for await (const { after, through } of caseRanges(audit)) {
      for (const row of await audit.session.rows<DifferingRow>(readDiffering, after, through)) {
        yield {
          what: `the item of letter ${row.letter_id} has another payload, and nobody edited it`,
          row: {
            letter: String(row.letter_id),
            engine: row.engine,
            letterBytes: String(row.letter_bytes),
            itemBytes: String(row.item_bytes),
            ...itemRow(audit, Number(row.part), Number(row.serial)),
          },
        }
      }
    }
  },
}
