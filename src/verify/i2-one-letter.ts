/**
 * I2: a source id has one letter, however often it fails, and each of its failures is in history: the capture, and
 * every time that it died again and was reopened.
 */
import { type Dialect, type Integer, sql } from '../db/database.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { attemptRanges, letterRanges } from './walk.ts'

const STEP = 5_000

/** The next source ids behind `$1`, `$2`; the unique index alone answers. */
const readSources = sql(
  'verify.sources',
  `SELECT engine, source_id FROM bartleby.letters WHERE (engine, source_id) > ($1, $2) ORDER BY engine, source_id LIMIT $3`,
)

/** The letters of one source id. Not in order: for that the planner would read all letters in order. */
const readNamesakes = sql(
  'verify.namesakes',
  'SELECT id FROM bartleby.letters WHERE engine = $1 AND source_id = $2 LIMIT 10',
  { bigints: true },
)

/**
 * Letters of a range that were captured since `$3` and have no history row of it. The range stands for history too, here
 * and in all joins of verify: a plan that merges the two would otherwise read the other from its start for every range.
 */
const readUnrecorded = sql(
  'verify.unrecorded',
  `SELECT id, engine, source_id FROM bartleby.letters AS letter
   WHERE id > $1 AND id <= $2 AND captured_at >= $3 AND correlation_id IS NOT NULL
     AND NOT EXISTS (SELECT 1 FROM bartleby.history WHERE letter_id = letter.id AND letter_id > $1 AND letter_id <= $2
       AND letter_version = 1 AND correlation_id IS NOT NULL)`,
  { bigints: true },
)

/**
 * The same of plain queues. Their rows are in the series `$4`, at the time of the capture, which many have in common: the
 * rows of each such moment are read once and taken from the letters as a set, whatever the plan.
 */
const readPlainUnrecorded = sql(
  'verify.plainUnrecorded',
  { postgres: plainUnrecorded('postgres'), sqlite: plainUnrecorded('sqlite') },
  { bigints: true },
)

function plainUnrecorded(dialect: Dialect): string {
  const captures = `SELECT letter_id, created_at FROM bartleby.history
    WHERE series = $4 AND created_at = moment.captured_at AND correlation_id IS NULL AND letter_version = 1`
  const captured =
    dialect === 'postgres'
      ? `SELECT record.* FROM moment CROSS JOIN LATERAL (${captures} OFFSET 0) AS record`
      : captures.replace('FROM bartleby.history', 'FROM moment CROSS JOIN history')
  return `
    WITH plain AS MATERIALIZED (
      SELECT id, captured_at FROM bartleby.letters
      WHERE id > $1 AND id <= $2 AND captured_at >= $3 AND correlation_id IS NULL
    ), moment AS (SELECT DISTINCT captured_at FROM plain)
    SELECT id, captured_at FROM plain EXCEPT ${captured}`
}

/** One by primary key. */
const readSource = sql('verify.source', 'SELECT id, engine, source_id FROM bartleby.letters WHERE id = $1', {
  bigints: true,
})

/**
 * Letters of a range with more failures that a newer one took the place of, since `$3`, than history has rows of that:
 * a reopening, another capture of it, or the run of an engine that failed. One look into history for each letter that died again.
 */
const readLostRelapses = sql(
  'verify.lostRelapses',
  `SELECT * FROM (
     SELECT failed.letter_id, count(*) AS relapses, (
       SELECT count(*) FROM bartleby.history JOIN bartleby.history_series ON history_series.id = history.series
       WHERE history.letter_id = failed.letter_id AND history.letter_version > 1 AND history.correlation_id IS NOT NULL
         AND (operation IN ('reopen', 'kafka.reopened', 'capture') OR (history_series.status = 1 AND operation NOT IN
           ('capture', 'retry', 'discard', 'complete', 'expire', 'restore', 'confirm', 'remove')))
     ) AS recorded
     FROM bartleby.letter_attempts AS failed
     WHERE failed.letter_id > $1 AND failed.letter_id <= $2 AND failed.superseded_at >= $3
     GROUP BY failed.letter_id
   ) AS counted WHERE recorded < relapses`,
  { bigints: true },
)

export const oneLetter: Invariant = {
  id: 'I2',
  promise: 'a source id has one letter, and each of its failures is in history',
  rows: ({ letters, attempts }) => 2 * letters + attempts,
  async *check(audit) {
    yield* duplicates(audit)
    yield* lostCaptures(audit)
    yield* lostRelapses(audit)
  },
}

interface Source {
  readonly engine: string
  readonly source_id: string
}

interface UnrecordedRow extends Source {
  readonly id: Integer
}

const same = (a: Source, b: Source | undefined): boolean =>
  a.engine === b?.engine && a.source_id === b.source_id

async function* duplicates(audit: Audit): AsyncGenerator<Finding> {
  for (let last: Source = { engine: '', source_id: '' }; ; ) {
    const page = await audit.session.rows<Source>(readSources, last.engine, last.source_id, STEP)
    const suspects = page.filter((source, i) => same(source, page[i + 1]) && !same(source, page[i - 1]))
    const end = page.at(-1)
    // The page may have cut through the letters of its last source id.
    if (page.length === STEP && end !== undefined && !suspects.some((source) => same(source, end)))
      suspects.push(end)
    for (const { engine, source_id } of suspects) {
      const namesakes = await audit.session.rows<{ id: Integer }>(readNamesakes, engine, source_id)
      if (namesakes.length < 2) continue
      yield {
        what: `source id '${source_id}' of engine '${engine}' has more than one letter`,
        row: { engine, sourceId: source_id, letters: namesakes.map(({ id }) => id).join(', ') },
      }
    }
    await audit.looked(page.length)
    if (page.length < STEP || end === undefined) return
    last = end
  }
}

async function* lostCaptures(audit: Audit): AsyncGenerator<Finding> {
  for await (const { after, through } of letterRanges(audit)) {
    const range = [after, through, audit.historySince] as const
    const unrecorded = await audit.session.rows<UnrecordedRow>(readUnrecorded, ...range)
    const plain = await audit.session.rows<{ id: Integer }>(readPlainUnrecorded, ...range, audit.plainSeries)
    for (const { id } of plain) unrecorded.push(...(await audit.session.rows<UnrecordedRow>(readSource, id)))
    for (const { id, engine, source_id } of unrecorded) {
      yield {
        what: `the capture of letter ${id} is not in history`,
        row: { letter: String(id), engine, sourceId: source_id },
      }
    }
  }
}

async function* lostRelapses(audit: Audit): AsyncGenerator<Finding> {
  for await (const { after, through } of attemptRanges(audit)) {
    const rows = await audit.session.rows<{ letter_id: Integer; relapses: Integer; recorded: Integer }>(
      readLostRelapses,
      after,
      through,
      audit.historySince,
    )
    for (const { letter_id, relapses, recorded } of rows) {
      yield {
        what: `letter ${letter_id} died again ${relapses} times, and history has ${recorded} of them`,
        row: { letter: String(letter_id), relapses: String(relapses), recorded: String(recorded) },
      }
    }
  }
}
