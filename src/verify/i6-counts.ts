/** I6: the books are exact: every count, of letters and of what lies in the queues, is what counting gives; activity agrees. */
import type { Integer } from '../db/database.ts'
import { readLetterCounts } from '../letters/counts.ts'
import { STATUS, STATUSES } from '../letters/letter.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { letterActivity } from './letter-activity.ts'
import { partitionCounts } from './partition-counts.ts'
import { type Difference, differences, Sums } from './sums.ts'
import { LETTERS, read, rowsAlong } from './walk.ts'

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

/** Letters of a range, by what they are counted under. Few groups: added up by the store. */
const countLetters = read(
  'countLetters',
  `SELECT drawer, status, engine, count(*) AS letters, min(id) AS example,
     sum(CASE WHEN resolution = 'retry' AND confirmed_at IS NULL THEN 1 ELSE 0 END) AS unconfirmed
   FROM bartleby.letters WHERE id > $1 AND id <= $2 GROUP BY drawer, status, engine`,
)

interface Group {
  readonly drawer: Integer
  readonly status: Integer
  readonly engine: string
  readonly letters: Integer
  readonly example: Integer
  readonly unconfirmed: Integer
}

/**
 * Letters per drawer and status, and those of which nothing was heard since they were sent back, compared with the books; and each
 * lies in a drawer of its engine.
 */
async function* letterCounts(audit: Audit): AsyncGenerator<Finding> {
  const found = new Sums<string>()
  for await (const group of rowsAlong<Group>(audit, LETTERS, countLetters)) {
    found.add(`${group.drawer} ${group.status}`, group.letters)
    found.add(`${group.drawer} ${STATUS.unconfirmed}`, group.unconfirmed)
    yield* misfiled(audit, group)
  }
  const books = new Map(
    (await readLetterCounts(audit.session))
      .filter(({ status }) => status !== STATUS.removed && status !== STATUS.captured)
      .map(({ drawer, status, letters }) => [`${drawer} ${status}`, letters]),
  )
  for (const difference of differences(found, books)) yield miscounted(audit, difference)
}

function* misfiled(audit: Audit, { drawer, engine, letters, example }: Group): Iterable<Finding> {
  const label = audit.drawers.get(Number(drawer))
  if (label?.engine === engine) return
  const where =
    label === undefined
      ? `drawer ${drawer}, which does not exist`
      : `drawer ${drawer}, which is of engine '${label.engine}'`
  yield {
    what: `${letters} letters of engine '${engine}' lie in ${where}`,
    row: { drawer, engine, letters, letter: example },
  }
}

function miscounted({ drawers }: Audit, { key, found, counted }: Difference<string>): Finding {
  const [drawer = '', status = ''] = key.split(' ')
  const name = Number(status) === STATUS.unconfirmed ? 'unconfirmed' : (STATUSES[Number(status)] ?? status)
  const label = drawers.get(Number(drawer))
  return {
    what: `drawer ${drawer} has ${found} ${name} letters, and the books say ${counted}`,
    row: {
      ...{ drawer, status: name, books: counted, found },
      ...{ source: label?.source, engine: label?.engine, queue: label?.queue },
      signature: label?.signature.fingerprint,
    },
  }
}
