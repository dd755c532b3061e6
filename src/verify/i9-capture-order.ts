/**
 * I9: letters of one key that a redrive kept in order went out as they were captured. Every item has a serial number, and these
 * ascend over the whole store: so the serials that the letters of a key were sent as must ascend with their captures. And none went
 * out before one that stayed behind: the first letter of a key that is pending, and to which nothing has happened since its
 * capture, has no successor that was sent long after it arrived.
 */
import { instant } from '../core/clock.ts'
import { formatMicros } from '../core/timestamp.ts'
import { type Integer, integerList, sql } from '../db/database.ts'
import { STATUS, UNNAMED_INSTANCE } from '../letters/letter.ts'
import { isOfQueues } from '../redrive/destinations.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { keepsKeysInOrder, redrivePages } from './redrive-walk.ts'
import { letterRanges } from './walk.ts'

const these = (column: string, parameter: string) => ({
  postgres: `${column} = ANY(${parameter}::int[])`,
  sqlite: `${column} IN (SELECT value FROM json_each(${parameter}))`,
})

/** Letters of a range that redrives which keep order sent, by their keys. */
const sentInOrder = (ofRedrives: string, ofDrawers: string): string =>
  `letter.id > $1 AND letter.id <= $2 AND ${ofRedrives} AND ${ofDrawers} AND letter.instance_id IS NOT NULL
   AND letter.instance_id <> '${UNNAMED_INSTANCE}' AND letter.sent_as IS NOT NULL`

/** The last nine characters of an item's id are its serial, in digits that sort as bytes do. */
const serialOf = (letter: string) => ({
  postgres: `right(${letter}.sent_as, 9) COLLATE "C"`,
  sqlite: `substr(${letter}.sent_as, -9)`,
})

/** Letters of a range, each with the one of its key and redrive before it: a look into letters_by_row_key for every letter. */
const outOfOrder = (dialect: 'postgres' | 'sqlite'): string =>
  `SELECT letter.id, letter.engine, letter.instance_id, letter.redrive, letter.sent_as, before.id AS before_id, before.sent_as AS before_sent_as
   FROM bartleby.letters AS letter JOIN bartleby.letters AS before ON before.id = (
     SELECT earlier.id FROM bartleby.letters AS earlier
     WHERE earlier.engine = letter.engine AND earlier.instance_id = letter.instance_id AND earlier.captured_at < letter.captured_at
       AND earlier.redrive = letter.redrive AND earlier.sent_as IS NOT NULL
     ORDER BY earlier.captured_at DESC LIMIT 1)
   WHERE ${sentInOrder(these('letter.redrive', '$3')[dialect], these('letter.drawer', '$4')[dialect])}
     AND ${serialOf('before')[dialect]} > ${serialOf('letter')[dialect]}`

const readOutOfOrder = sql(
  'verify.outOfOrder',
  { postgres: outOfOrder('postgres'), sqlite: outOfOrder('sqlite') },
  { bigints: true },
)

/** A capture was there for whoever sent something so much later: its transaction was over. */
const LATER_US = 60_000_000

/** Letters of a range, each with the first of its key that is pending: a look into letters_pending_of_key for every letter. */
const overtaking = (dialect: 'postgres' | 'sqlite'): string =>
  `SELECT letter.id, letter.engine, letter.instance_id, letter.redrive, letter.resolved_at, before.id AS before_id
   FROM bartleby.letters AS letter JOIN bartleby.letters AS before ON before.id = (
     SELECT earlier.id FROM bartleby.letters AS earlier
     WHERE earlier.engine = letter.engine AND earlier.instance_id = letter.instance_id AND earlier.captured_at < letter.captured_at
       AND earlier.status = ${STATUS.Pending}
     ORDER BY earlier.captured_at LIMIT 1)
   WHERE ${sentInOrder(these('letter.redrive', '$3')[dialect], these('letter.drawer', '$4')[dialect])}
     AND letter.resolved_at IS NOT NULL AND before.version = 1 AND (
       SELECT record.created_at FROM bartleby.history AS record
       WHERE record.letter_id = before.id AND record.correlation_id IS NOT NULL AND record.letter_version = 1 LIMIT 1
     ) < letter.resolved_at - ${LATER_US}`

const readOvertaking = sql(
  'verify.overtaking',
  { postgres: overtaking('postgres'), sqlite: overtaking('sqlite') },
  { bigints: true },
)

interface Pair {
  readonly id: Integer
  readonly engine: string
  readonly instance_id: string
  readonly redrive: Integer
  readonly before_id: Integer
}

interface OutOfOrder extends Pair {
  readonly sent_as: string
  readonly before_sent_as: string
}

interface Overtaking extends Pair {
  readonly resolved_at: Integer
}

export const captureOrder: Invariant = {
  id: 'I9',
  promise: 'of a key, a redrive sends letters in the order of their capture',
  rows: ({ letters, redriven }) => (redriven === 0 ? 0 : letters),
  async *check(audit) {
    const redrives = new Map<number, string>()
    for await (const page of redrivePages(audit))
      for (const redrive of page) if (keepsKeysInOrder(redrive)) redrives.set(redrive.number, redrive.id)
    if (redrives.size > 0) yield* inOrder(audit, redrives)
  },
}

async function* inOrder(audit: Audit, redrives: ReadonlyMap<number, string>): AsyncGenerator<Finding> {
  const { session, drawers } = audit
  const ofQueues = [...drawers.values()].filter(({ source }) => isOfQueues(source))
  const lists = [
    integerList(session.dialect, [...redrives.keys()]),
    integerList(
      session.dialect,
      ofQueues.map(({ number }) => number),
    ),
  ]
  const rowOf = (pair: Pair) => ({
    redrive: redrives.get(Number(pair.redrive)) ?? String(pair.redrive),
    engine: pair.engine,
    key: pair.instance_id,
    letter: String(pair.id),
    before: String(pair.before_id),
  })
  for await (const { after, through } of letterRanges(audit)) {
    for (const pair of await session.rows<OutOfOrder>(readOutOfOrder, after, through, ...lists)) {
      yield {
        what: `letter ${pair.id} was sent before letter ${pair.before_id} of its key, which was captured before it`,
        row: { ...rowOf(pair), sentAs: pair.sent_as, beforeSentAs: pair.before_sent_as },
      }
    }
    for (const pair of await session.rows<Overtaking>(readOvertaking, after, through, ...lists)) {
      yield {
        what: `letter ${pair.id} was sent although letter ${pair.before_id} of its key, captured before it, was pending`,
        row: { ...rowOf(pair), sentAt: formatMicros(instant(BigInt(pair.resolved_at))) },
      }
    }
  }
}
