/** I6: the books are exact: every count, of letters and of what lies in the queues, is what counting gives; activity agrees. */
import { readLetterCounts } from '../letters/counts.ts'
import { STATUS, STATUSES } from '../letters/letter.ts'
import type { Audit, Finding, FoundRow, Invariant } from './invariant.ts'
import { letterActivity } from './letter-activity.ts'
import { partitionCounts } from './partition-counts.ts'
import { type Difference, differences, Sums } from './sums.ts'
import { batchesOf, read } from './walk.ts'

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

/** All letters, by what they are counted under. */
const readPlaces = read(
  'letterPlaces',
  `SELECT id, drawer, status, engine, CASE WHEN resolution = 'retry' AND confirmed_at IS NULL THEN 1 ELSE 0 END AS unconfirmed
   FROM bartleby.letters`,
)

/**
 * Letters per drawer and status, and those of which nothing was heard since they were sent back, compared with the books; and each
 * lies in a drawer of its engine.
 */
async function* letterCounts(audit: Audit): AsyncGenerator<Finding> {
  const found = new Sums<string>()
  const misfiled = new Map<string, { first: FoundRow; letters: number }>()
  for await (const letters of batchesOf(audit, readPlaces)) {
    for (const letter of letters) {
      const { drawer, status, engine, unconfirmed } = letter
      found.add(`${drawer} ${status}`, 1)
      if (Number(unconfirmed) === 1) found.add(`${drawer} ${STATUS.unconfirmed}`, 1)
      if (audit.drawers.get(Number(drawer))?.engine === engine) continue
      const { first = letter, letters = 0 } = misfiled.get(`${drawer} ${engine}`) ?? {}
      misfiled.set(`${drawer} ${engine}`, { first, letters: letters + 1 })
    }
  }
  for (const { first, letters } of misfiled.values()) yield misfiledIn(audit, first, letters)
  const books = new Map(
    (await readLetterCounts(audit.session))
      .filter(({ status }) => status !== STATUS.removed && status !== STATUS.captured)
      .map(({ drawer, status, letters }) => [`${drawer} ${status}`, letters]),
  )
  for (const difference of differences(found, books)) yield miscounted(audit, difference)
}

function misfiledIn({ drawers }: Audit, { id, drawer, engine }: FoundRow, letters: number): Finding {
  const label = drawers.get(Number(drawer))
  const where =
    label === undefined
      ? `drawer ${drawer}, which does not exist`
      : `drawer ${drawer}, which is of engine '${label.engine}'`
  return {
    what: `${letters} letters of engine '${engine}' lie in ${where}`,
    row: { drawer, engine, letters, letter: id },
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
