/**
 * I2: a source id has one letter, however often it fails, and each of its failures is in history: the capture, and
 * every time that it died again and was reopened.
 */
import type { Dialect, Integer } from '../db/database.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { ATTEMPTS, fault, faultsAlong, LETTERS, pages, read } from './walk.ts'

/** The next source ids behind `$1`, `$2`; the unique index alone answers. */
const readSources = read(
  'sources',
  `SELECT engine, source_id FROM bartleby.letters WHERE (engine, source_id) > ($1, $2) ORDER BY engine, source_id LIMIT 5000`,
)

/** The letters of one source id. Not in order: for that the planner would read all letters in order. */
const readNamesakes = read(
  'namesakes',
  'SELECT id FROM bartleby.letters WHERE engine = $1 AND source_id = $2 LIMIT 10',
)

/**
 * Letters of a range that were captured since `$3` and have no history row of it. The range stands for history too, here
 * and in all joins of verify: a plan that merges the two would otherwise read the other from its start for every range.
 */
const unrecorded = fault(
  'unrecorded',
  `SELECT id AS letter, engine, source_id AS "sourceId" FROM bartleby.letters AS letter
   WHERE id > $1 AND id <= $2 AND captured_at >= $3 AND correlation_id IS NOT NULL
     AND NOT EXISTS (SELECT 1 FROM bartleby.history WHERE letter_id = letter.id AND letter_id > $1 AND letter_id <= $2
       AND letter_version = 1 AND correlation_id IS NOT NULL)`,
  ({ letter }) => `the capture of letter ${letter} is not in history`,
  ({ historySince }) => [historySince],
)

/**
 * The same of plain queues. Their rows are in the series `$4`, at the time of the capture, which many have in common: the
 * rows of each such moment are read once and taken from the letters as a set, whatever the plan.
 */
const plainUnrecorded = fault(
  'plainUnrecorded',
  { postgres: withoutCapture('postgres'), sqlite: withoutCapture('sqlite') },
  unrecorded.say,
  ({ historySince, plainSeries }) => [historySince, plainSeries],
)

function withoutCapture(dialect: Dialect): string {
  const captures = `SELECT letter_id, created_at FROM bartleby.history
    WHERE series = $4 AND created_at = moment.captured_at AND correlation_id IS NULL AND letter_version = 1`
  const captured =
    dialect === 'postgres'
      ? `SELECT record.* FROM moment CROSS JOIN LATERAL (${captures} OFFSET 0) AS record`
      : captures.replace('FROM bartleby.history', 'FROM moment CROSS JOIN history')
  return `
    WITH plain AS MATERIALIZED (
      SELECT id, captured_at, engine, source_id FROM bartleby.letters
      WHERE id > $1 AND id <= $2 AND captured_at >= $3 AND correlation_id IS NULL
    ), moment AS (SELECT DISTINCT captured_at FROM plain)
    SELECT plain.id AS letter, engine, source_id AS "sourceId" FROM plain
    JOIN (SELECT id, captured_at FROM plain EXCEPT ${captured}) AS odd ON odd.id = plain.id`
}

/**
 * Letters of a range with more failures that a newer one took the place of, since `$3`, than history has rows of that:
 * a reopening, another capture of it, or the run of an engine that failed. One look into history for each letter that died again.
 */
const lostRelapses = fault(
  'lostRelapses',
  `SELECT * FROM (
     SELECT failed.letter_id AS letter, count(*) AS relapses, (
       SELECT count(*) FROM bartleby.history JOIN bartleby.history_series ON history_series.id = history.series
       WHERE history.letter_id = failed.letter_id AND history.letter_version > 1 AND history.correlation_id IS NOT NULL
         AND (operation IN ('reopen', 'kafka.reopened', 'capture') OR (history_series.status = 1 AND operation NOT IN
           ('capture', 'retry', 'discard', 'complete', 'expire', 'restore', 'confirm', 'remove')))
     ) AS recorded
     FROM bartleby.letter_attempts AS failed
     WHERE failed.letter_id > $1 AND failed.letter_id <= $2 AND failed.superseded_at >= $3
     GROUP BY failed.letter_id
   ) AS counted WHERE recorded < relapses`,
  ({ letter, relapses, recorded }) =>
    `letter ${letter} died again ${relapses} times, and history has ${recorded} of them`,
  ({ historySince }) => [historySince],
)

export const oneLetter: Invariant = {
  id: 'I2',
  promise: 'a source id has one letter, and each of its failures is in history',
  rows: ({ letters, attempts }) => 2 * letters + attempts,
  async *check(audit) {
    yield* duplicates(audit)
    yield* faultsAlong(audit, LETTERS, [unrecorded, plainUnrecorded])
    yield* faultsAlong(audit, ATTEMPTS, [lostRelapses])
  },
}

interface Source {
  readonly engine: string
  readonly source_id: string
}

const keyOf = ({ engine, source_id }: Source) => [engine, source_id]

const same = (a: Source, b: Source | undefined): boolean =>
  a.engine === b?.engine && a.source_id === b.source_id

async function* duplicates({ session, looked }: Audit): AsyncGenerator<Finding> {
  for await (const page of pages<Source>(session, readSources, ['', ''], keyOf)) {
    // The page may have cut through the letters of its last source id.
    const isSuspect = (source: Source, i: number): boolean =>
      !same(source, page[i - 1]) && (i === page.length - 1 || same(source, page[i + 1]))
    for (const { engine, source_id } of page.filter(isSuspect)) {
      const namesakes = await session.rows<{ id: Integer }>(readNamesakes, engine, source_id)
      if (namesakes.length < 2) continue
      yield {
        what: `source id '${source_id}' of engine '${engine}' has more than one letter`,
        row: { engine, sourceId: source_id, letters: namesakes.map(({ id }) => id).join(', ') },
      }
    }
    await looked(page.length)
  }
}
