/**
 * Letters per drawer and status, and those of which nothing was heard since they were sent back, counted and compared with the
 * books; and each lies in a drawer of its engine.
 */
import { type Integer, sql } from '../db/database.ts'
import { readLetterCounts } from '../letters/counts.ts'
import { STATUS, STATUSES } from '../letters/letter.ts'
import type { Audit, Finding } from './invariant.ts'
import { letterRanges } from './walk.ts'

/** Letters of a range, by what they are counted under. Few groups: added up by the store. */
const countRange = sql(
  'verify.countLetters',
  `SELECT drawer, status, engine, count(*) AS letters, min(id) AS example,
     sum(CASE WHEN resolution = 'retry' AND confirmed_at IS NULL THEN 1 ELSE 0 END) AS unconfirmed
   FROM bartleby.letters WHERE id > $1 AND id <= $2 GROUP BY drawer, status, engine`,
  { bigints: true },
)

interface Group {
  readonly drawer: Integer
  readonly status: Integer
  readonly engine: string
  readonly letters: Integer
  readonly example: Integer
  readonly unconfirmed: Integer
}

export async function* letterCounts(audit: Audit): AsyncGenerator<Finding> {
  const found = new Map<string, number>()
  const add = (drawer: Integer, status: Integer, letters: Integer): void => {
    const key = `${drawer} ${status}`
    found.set(key, (found.get(key) ?? 0) + Number(letters))
  }
  for await (const { after, through } of letterRanges(audit)) {
    for (const group of await audit.session.rows<Group>(countRange, after, through)) {
      add(group.drawer, group.status, group.letters)
      add(group.drawer, STATUS.unconfirmed, group.unconfirmed)
      yield* misfiled(audit, group)
    }
  }
  const books = new Map(
    (await readLetterCounts(audit.session))
      .filter(({ status }) => status !== STATUS.removed && status !== STATUS.captured)
      .map(({ drawer, status, letters }) => [`${drawer} ${status}`, letters]),
  )
  const keys = [...new Set([...found.keys(), ...books.keys()])]
  for (const key of keys.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))) {
    const counted = books.get(key) ?? 0
    const there = found.get(key) ?? 0
    if (counted !== there) yield difference(audit, key, counted, there)
  }
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
    row: { drawer: String(drawer), engine, letters: String(letters), letter: String(example) },
  }
}

function difference({ drawers }: Audit, key: string, counted: number, there: number): Finding {
  const [drawer = '', status = ''] = key.split(' ')
  const label = drawers.get(Number(drawer))
  const name = Number(status) === STATUS.unconfirmed ? 'unconfirmed' : (STATUSES[Number(status)] ?? status)
  return {
    what: `drawer ${drawer} has ${there} ${name} letters, and the books say ${counted}`,
    row: {
      drawer,
      status: name,
      books: String(counted),
      found: String(there),
      ...(label === undefined
        ? {}
        : {
            source: label.source,
            engine: label.engine,
            queue: label.queue,
            signature: label.signature.fingerprint,
          }),
    },
  }
}
