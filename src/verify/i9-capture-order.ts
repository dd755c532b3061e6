/**
 * I9: letters of one key that a redrive kept in order went out as they were captured. Every item has a serial number, and these
 * ascend over the whole store: so the serials that the letters of a key were sent as must ascend with their captures. And none went
 * out before one that stayed behind: the first letter of a key that is pending, and to which nothing has happened since its
 * capture, has no successor that was sent long after it arrived.
 */
import { instant } from '../core/clock.ts'
import { formatMicros } from '../core/timestamp.ts'
import type { Dialect } from '../db/database.ts'
import { STATUS, UNNAMED_INSTANCE } from '../letters/letter.ts'
import { isOfQueues } from '../redrive/destinations.ts'
import { isSending } from '../redrive/redrive.ts'
import type { Invariant } from './invariant.ts'
import { redrivePages } from './redrive-lanes.ts'
import { fault, faultsAlong, LETTERS } from './walk.ts'

const these = (column: string, parameter: string) => ({
  postgres: `${column} = ANY(${parameter}::int[])`,
  sqlite: `${column} IN (SELECT value FROM json_each(${parameter}))`,
})

/** Letters of a range that the redrives `$3` sent, and which lie in the drawers `$4`, by their keys. */
const sentInOrder = (dialect: Dialect): string =>
  `letter.id > $1 AND letter.id <= $2 AND ${these('letter.redrive', '$3')[dialect]} AND ${these('letter.drawer', '$4')[dialect]}
   AND letter.instance_id IS NOT NULL AND letter.instance_id <> '${UNNAMED_INSTANCE}' AND letter.sent_as IS NOT NULL`

/** What is shown of a letter and of the one before it. */
const PAIR = `(SELECT id FROM bartleby.redrives WHERE number = letter.redrive) AS redrive, letter.engine, letter.instance_id AS key, letter.id AS letter, before.id AS before`

/** The last nine characters of an item's id are its serial, in digits that sort as bytes do. */
const serialOf = (letter: string) => ({
  postgres: `right(${letter}.sent_as, 9) COLLATE "C"`,
  sqlite: `substr(${letter}.sent_as, -9)`,
})

/** Letters of a range, each with the one of its key and redrive before it: a look into letters_by_row_key for every letter. */
const outOfOrder = (dialect: Dialect): string =>
  `SELECT ${PAIR}, letter.sent_as AS "sentAs", before.sent_as AS "beforeSentAs"
   FROM bartleby.letters AS letter JOIN bartleby.letters AS before ON before.id = (
     SELECT earlier.id FROM bartleby.letters AS earlier
     WHERE earlier.engine = letter.engine AND earlier.instance_id = letter.instance_id AND earlier.captured_at < letter.captured_at
       AND earlier.redrive = letter.redrive AND earlier.sent_as IS NOT NULL
     ORDER BY earlier.captured_at DESC LIMIT 1)
   WHERE ${sentInOrder(dialect)} AND ${serialOf('before')[dialect]} > ${serialOf('letter')[dialect]}`

/** A capture was there for whoever sent something so much later: its transaction was over. */
const LATER_US = 60_000_000

/** Letters of a range, each with the first of its key that is pending: a look into letters_pending_of_key for every letter. */
const overtaking = (dialect: Dialect): string =>
  `SELECT ${PAIR}, letter.resolved_at AS "sentAt"
   FROM bartleby.letters AS letter JOIN bartleby.letters AS before ON before.id = (
     SELECT earlier.id FROM bartleby.letters AS earlier
     WHERE earlier.engine = letter.engine AND earlier.instance_id = letter.instance_id AND earlier.captured_at < letter.captured_at
       AND earlier.status = ${STATUS.Pending}
     ORDER BY earlier.captured_at LIMIT 1)
   WHERE ${sentInOrder(dialect)} AND letter.resolved_at IS NOT NULL AND before.version = 1 AND (
       SELECT record.created_at FROM bartleby.history AS record
       WHERE record.letter_id = before.id AND record.correlation_id IS NOT NULL AND record.letter_version = 1 LIMIT 1
     ) < letter.resolved_at - ${LATER_US}`

const both = (text: (dialect: Dialect) => string) => ({ postgres: text('postgres'), sqlite: text('sqlite') })

export const captureOrder: Invariant = {
  id: 'I9',
  promise: 'of a key, a redrive sends letters in the order of their capture',
  rows: ({ letters, redriven }) => (redriven === 0 ? 0 : letters),
  async *check(audit) {
    const { session, drawers } = audit
    const redrives: number[] = []
    for await (const page of redrivePages(session))
      for (const { number, action, order } of page)
        if (isSending(action) && order === 'key') redrives.push(number)
    if (redrives.length === 0) return
    const ofQueues = [...drawers.values()].filter(({ source }) => isOfQueues(source))
    const numbers = [redrives, ofQueues.map(({ number }) => number)]
    const lists = numbers.map((list) => list)
    yield* faultsAlong(audit, LETTERS, [
      fault(
        'outOfOrder',
        both(outOfOrder),
        ({ letter, before }) =>
          `letter ${letter} was sent before letter ${before} of its key, which was captured before it`,
        () => lists,
      ),
      fault(
        'overtaking',
        both(overtaking),
        ({ sentAt, ...pair }) => ({
          what: `letter ${pair.letter} was sent although letter ${pair.before} of its key, captured before it, was pending`,
          row: { ...pair, sentAt: formatMicros(instant(BigInt(sentAt ?? 0))) },
        }),
        () => lists,
      ),
    ])
  },
}
