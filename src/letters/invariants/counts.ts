/** I6: the books are exact: every count of letters, by drawer and by place, is what counting gives. */

import type { Audit, Finding, FoundRow, Invariant } from '../audit/invariant.ts'
import { batchesOf, type Difference, differences, read, Sums } from '../audit/walk.ts'
import { STATUS, STATUSES } from '../letter.ts'
import { EVER } from '../numbers/activity.ts'
import { readAccounts } from '../numbers/books.ts'
import { type DrawerCount, readLetterCounts } from '../numbers/counts.ts'
import { OUTCOMES } from '../numbers/gauges.ts'
import { letterActivity } from './activity.ts'

export const letterCounts: Invariant = {
  id: 'I6',
  promise: 'every count is what counting gives',
  rows: ({ sizes: { letters } }) => 2 * letters,
  async *check(audit) {
    yield* miscounts(audit)
    yield* letterActivity(audit)
  },
}

/** All letters, by what they are counted under. */
const readPlaces = read(
  'letterPlaces',
  `SELECT id, drawer, status, engine, CASE WHEN resolution = 'retry' AND confirmed_at IS NULL THEN 1 ELSE 0 END AS unconfirmed
   FROM bartleby.letters`,
)

/**
 * Letters per drawer and status, per place and status, and those of which nothing was heard since they were sent back, compared with the
 * books; and each lies in a drawer of its engine.
 */
async function* miscounts(audit: Audit): AsyncGenerator<Finding> {
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
  const counts = await readLetterCounts(audit.session)
  const books = new Map(
    counts
      .filter(({ status }) => status <= STATUS.unconfirmed)
      .map(({ drawer, status, letters }) => [`${drawer} ${status}`, letters]),
  )
  for (const difference of differences(found, books)) yield miscounted(audit, difference)
  yield* placeCounts(audit, found)
  yield* actsOfDrawers(audit, counts)
}

/** What is in drawers is at their places. */
async function* placeCounts(audit: Audit, found: ReadonlyMap<string, number>): AsyncGenerator<Finding> {
  const there = new Sums<string>()
  for (const [key, letters] of found) {
    const [drawer, status] = key.split(' ')
    there.add(`${audit.drawers.get(Number(drawer))?.place} ${status}`, letters)
  }
  const accounts = await readAccounts(audit.session)
  const books = new Map(
    accounts.flatMap(({ place, letters, unconfirmed }) => [
      ...STATUSES.map((name) => [`${place.number} ${STATUS[name]}`, letters[name]] as const),
      [`${place.number} ${STATUS.unconfirmed}`, unconfirmed] as const,
    ]),
  )
  for (const { key, found, counted } of differences(there, books)) {
    const [number, status = ''] = key.split(' ')
    const label = accounts.find(({ place }) => place.number === Number(number))?.place
    const name = nameOf(status)
    yield {
      what: `place ${number} has ${found} ${name} letters, and the books say ${counted}`,
      row: { place: number, status: name, books: counted, found, ...label },
    }
  }
}

/** Drawers go, and what was ever done stays at their places: it is never less there. */
async function* actsOfDrawers(audit: Audit, counts: readonly DrawerCount[]): AsyncGenerator<Finding> {
  const told = new Sums<string>()
  for (const { drawer, status, letters } of counts)
    if (status > STATUS.unconfirmed) told.add(`${audit.drawers.get(drawer)?.place} ${status}`, letters)
  for (const { place, ever } of await readAccounts(audit.session))
    for (const act of OUTCOMES) {
      const drawers = told.get(`${place.number} ${EVER[act]}`) ?? 0
      if (drawers > ever[act])
        yield {
          what: `${drawers} letters in drawers of place ${place.number} were ${act}, and the place tells of ${ever[act]}`,
          row: { ...place, place: place.number, act, drawers, books: ever[act] },
        }
    }
}

const nameOf = (status: string): string =>
  Number(status) === STATUS.unconfirmed ? 'unconfirmed' : (STATUSES[Number(status)] ?? status)

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
  const name = nameOf(status)
  const label = drawers.get(Number(drawer))
  return {
    what: `drawer ${drawer} has ${found} ${name} letters, and the books say ${counted}`,
    row: {
      ...{ drawer, status: name, books: counted, found },
      ...{ source: label?.source, engine: label?.engine, queue: label?.queue },
      signature: label?.fingerprint,
    },
  }
}
