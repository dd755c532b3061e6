/**
 * I4: a letter has at most one item on its way, and only while it is resolved by that retry and waits for the outcome.
 * An item of a letter that is pending again, discarded or confirmed would be worked on a second time.
 */
import { type Integer, sql } from '../db/database.ts'
import { STATUS, STATUSES } from '../letters/letter.ts'
import { itemRow } from './audit.ts'
import type { Invariant } from './invariant.ts'
import { caseRanges } from './walk.ts'

/** Cases of a range that more than one item has, on the index of cases. */
const readShared = sql(
  'verify.sharedCases',
  `SELECT case_id, count(*) AS items FROM bartleby.items WHERE case_id > $1 AND case_id <= $2
   GROUP BY case_id HAVING count(*) > 1`,
  { bigints: true },
)

/** Items of a range of cases whose letter does not wait for them: one look at a letter for each. */
const readStray = sql(
  'verify.strayRetries',
  `SELECT item.part, item.id AS serial, letter.id AS letter_id, letter.engine, letter.status, letter.resolution
   FROM bartleby.items AS item JOIN bartleby.letters AS letter ON letter.id = item.case_id
   WHERE item.case_id > $1 AND item.case_id <= $2 AND letter.id > $1 AND letter.id <= $2 AND letter.version > 1
     AND (letter.status <> ${STATUS.Resolved} OR letter.resolution IS NULL OR letter.resolution <> 'retry'
       OR letter.confirmed_at IS NOT NULL)`,
  { bigints: true },
)

interface StrayRow {
  readonly part: Integer
  readonly serial: Integer
  readonly letter_id: Integer
  readonly engine: string
  readonly status: Integer
  readonly resolution: string | null
}

export const oneRetry: Invariant = {
  id: 'I4',
  promise: 'a letter has at most one item on its way, and waits for it',
  rows: ({ cases }) => cases,
  async *check(audit) {
    const { session, partitions } = audit
    for await (const { after, through } of caseRanges(audit)) {
      const shared = await session.rows<{ case_id: Integer; items: Integer }>(readShared, after, through)
      for (const { case_id, items } of shared) {
        yield {
          what: `${items} items carry the case of letter ${case_id}`,
          row: { letter: String(case_id), items: String(items) },
        }
      }
      for (const stray of await session.rows<StrayRow>(readStray, after, through)) {
        // What a deleted queue left behind cannot be leased any more.
        if (!partitions.has(Number(stray.part))) continue
        const status = STATUSES[Number(stray.status)] ?? String(stray.status)
        yield {
          what: `letter ${stray.letter_id} is ${status} and does not wait for the item of its retry, which lives`,
          row: {
            letter: String(stray.letter_id),
            engine: stray.engine,
            status,
            resolution: stray.resolution ?? '-',
            ...itemRow(audit, Number(stray.part), Number(stray.serial)),
          },
        }
      }
    }
  },
}
