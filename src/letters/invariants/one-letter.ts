/** I2: a source id has one letter, and history has each of its failures: the capture and every reopening. */

import type { OperationKind } from '../../history/entry.ts'
import type { Audit, CaseFile, Finding, FoundRow, Invariant, LetterCheck } from '../audit/invariant.ts'
import { batchesOf, read } from '../audit/walk.ts'
import { wordsFor } from '../transitions.ts'

const readSources = read(
  'sources',
  'SELECT engine, source_id AS "sourceId", id FROM bartleby.letters ORDER BY engine, source_id, id',
)

export const oneLetter: Invariant = {
  id: 'I2',
  promise: 'a source id has one letter, and each of its failures is in history',
  ofLetters: unrecorded,
  rows: ({ sizes: { letters } }) => letters,
  check: duplicates,
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

function unrecorded({ operationKinds, historySince }: Audit): LetterCheck {
  const reopening = new Set(
    [...operationKinds].filter(([, kind]) => isReopening(kind)).map(([number]) => number),
  )
  const isSince = (at: FoundRow[string]) => Number(at) >= historySince
  return {
    *look(file) {
      const { id, letter, transitions, relapses } = file
      if (letter !== undefined && isSince(letter.captured_at) && !hasCapture(letter, file))
        yield {
          what: `the capture of letter ${id} is not in history`,
          row: { letter: id, engine: letter.engine, sourceId: letter.sourceId },
        }
      const died = relapses.filter(({ superseded_at }) => isSince(superseded_at)).length
      if (died === 0) return
      const recorded = transitions.filter(
        ({ version, series }) => Number(version) > 1 && reopening.has(Number(series)),
      ).length
      if (recorded < died)
        yield {
          what: `letter ${id} died again ${died} times, and history has ${recorded} of them`,
          row: { letter: id, relapses: died, recorded },
        }
    },
  }
}

/** The capture of a plain queue is known by its time. */
const hasCapture = ({ plain, captured_at }: FoundRow, { transitions, captures }: CaseFile): boolean =>
  Number(plain) === 0
    ? transitions.some(({ version }) => Number(version) === 1)
    : captures.some(
        ({ version, created_at }) => Number(version) === 1 && Number(created_at) === Number(captured_at),
      )

const OTHERS = ['retry', 'discard', 'complete', 'expire', 'restore', 'confirm', 'remove']

/** A reopening, another capture, or a failed run of an engine. */
const isReopening = ({ operation, status }: OperationKind): boolean =>
  operation === 'capture' ||
  wordsFor('reopen').includes(operation) ||
  (status === 'Failed' && !OTHERS.includes(operation))
