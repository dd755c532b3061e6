/**
 * I2: a source id has one letter, however often it fails, and each of its failures is in history: the capture, and
 * every time that it died again and was reopened.
 */
import { readSeriesLabels, type SeriesLabel } from '../history/rows.ts'
import type { Audit, Finding, FoundRow, Invariant } from './invariant.ts'
import { batchesOf, LETTERS, plainCaptures, read, type Side, TRANSITIONS, together } from './walk.ts'

/** All source ids, those of one engine beside each other. */
const readSources = read(
  'sources',
  'SELECT engine, source_id AS "sourceId", id FROM bartleby.letters ORDER BY engine, source_id, id',
)

/** Failures that a newer one took the place of, by their letters. */
const ATTEMPTS: Side = {
  statement: read(
    'attempts',
    'SELECT letter_id AS key, superseded_at FROM bartleby.letter_attempts WHERE superseded_at IS NOT NULL ORDER BY letter_id',
  ),
}

export const oneLetter: Invariant = {
  id: 'I2',
  promise: 'a source id has one letter, and each of its failures is in history',
  rows: ({ letters, history }) => 2 * letters + history,
  async *check(audit) {
    yield* duplicates(audit)
    yield* unrecorded(audit)
  },
}

async function* duplicates(audit: Audit): AsyncGenerator<Finding> {
  let letters: FoundRow[] = []
  const isNext = ({ engine, sourceId }: FoundRow) =>
    engine === letters[0]?.engine && sourceId === letters[0]?.sourceId
  for await (const rows of batchesOf(audit, readSources)) {
    for (const row of rows) {
      if (isNext(row)) letters.push(row)
      else {
        if (letters.length > 1) yield duplicate(letters)
        letters = [row]
      }
    }
  }
  if (letters.length > 1) yield duplicate(letters)
}

function duplicate(letters: readonly FoundRow[]): Finding {
  const { engine, sourceId } = letters[0] ?? {}
  const ids = letters.slice(0, 10).map(({ id }) => id)
  return {
    what: `source id '${sourceId}' of engine '${engine}' has more than one letter`,
    row: { engine, sourceId, letters: ids.join(', ') },
  }
}

async function* unrecorded(audit: Audit): AsyncGenerator<Finding> {
  const labels = [...(await readSeriesLabels(audit.session))]
  const relapses = new Set(labels.filter(([, label]) => isRelapse(label)).map(([series]) => series))
  const isSince = (at: FoundRow[string]) => Number(at) >= audit.historySince
  const sides = {
    letters: LETTERS,
    transitions: TRANSITIONS,
    captures: plainCaptures(audit),
    attempts: ATTEMPTS,
  }
  for await (const { key: letter, letters, transitions, captures, attempts } of together(audit, sides)) {
    for (const { engine, sourceId, captured_at, plain } of letters) {
      const isCapture = ({ version, created_at }: FoundRow) =>
        Number(version) === 1 && (Number(plain) === 0 || Number(created_at) === Number(captured_at))
      if (isSince(captured_at) && !(Number(plain) === 1 ? captures : transitions).some(isCapture))
        yield {
          what: `the capture of letter ${letter} is not in history`,
          row: { letter, engine, sourceId },
        }
    }
    const died = attempts.filter(({ superseded_at }) => isSince(superseded_at)).length
    if (died === 0) continue
    const recorded = transitions.filter(
      ({ version, series }) => Number(version) > 1 && relapses.has(Number(series)),
    ).length
    if (recorded < died)
      yield {
        what: `letter ${letter} died again ${died} times, and history has ${recorded} of them`,
        row: { letter, relapses: died, recorded },
      }
  }
}

const RELAPSES = ['reopen', 'kafka.reopened', 'capture']
const OTHERS = ['retry', 'discard', 'complete', 'expire', 'restore', 'confirm', 'remove']

/** What says that a letter died again: a reopening, another capture of it, or the run of an engine that failed. */
const isRelapse = ({ operation, status }: SeriesLabel): boolean =>
  RELAPSES.includes(operation) || (status === 'Failed' && !OTHERS.includes(operation))
