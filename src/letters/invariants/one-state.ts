/**
 * I3: a letter has one legal status that its other columns fit, is in a dead queue only while pending, and each of its transitions has
 * one history row, with versions that count up without a gap; retention may have removed the first ones. Each capture of a plain queue
 * belongs to a letter, at its time; I2 finds missing ones.
 */
import { instant } from '../../core/clock.ts'
import { formatMicros } from '../../core/timestamp.ts'
import { NO_LETTER } from '../audit/case-file.ts'
import type { CaseFile, Finding, FoundRow, Invariant } from '../audit/invariant.ts'
import { oddState } from '../audit/state-columns.ts'
import { STATUSES } from '../letter.ts'

export const oneState: Invariant = {
  id: 'I3',
  promise: 'a letter is in one state, and each of its transitions has one history row',
  ofLetters: ({ historySince, drawers }) => ({
    *look(file) {
      const { letter } = file
      if (letter !== undefined) {
        yield* faultsOf(letter, file, historySince)
        yield* oddState(letter, drawers.get(Number(letter.drawer))?.source)
      }
      if (file.captures.length > 0 && file.id !== NO_LETTER) yield* strayCaptures(file)
    },
  }),
}

/** Captures that are there twice, at another time, or not the first version. */
function* strayCaptures({ letter, captures }: CaseFile): Iterable<Finding> {
  const times = new Set<number>()
  for (const capture of captures) {
    const at = Number(capture.created_at)
    const isOwn =
      letter === undefined ||
      (Number(letter.captured_at) === at && Number(letter.plain) === 1 && Number(capture.version) === 1)
    if (times.has(at)) yield strayCapture(capture, 'is in history twice')
    else if (!isOwn) yield strayCapture(capture, 'is in history at another time than its own')
    times.add(at)
  }
}

const strayCapture = ({ key, created_at }: FoundRow, what: string): Finding => ({
  what: `the capture of letter ${key} ${what}`,
  row: { letter: key, recordedAt: formatMicros(instant(BigInt(created_at ?? 0))) },
})

interface Recorded {
  readonly recorded: number
  readonly versions: number
  readonly first: number
  readonly last: number
}

function recordedOf({ captured_at }: FoundRow, { transitions, captures }: CaseFile): Recorded {
  const versions = transitions.map(({ version }) => Number(version))
  if (captures.some(({ created_at }) => Number(created_at) === Number(captured_at))) versions.push(1)
  const [first = 0, last = 0] = versions.length === 0 ? [] : [Math.min(...versions), Math.max(...versions)]
  return { recorded: versions.length, versions: new Set(versions).size, first, last }
}

function* faultsOf(letter: FoundRow, file: CaseFile, historySince: bigint): Iterable<Finding> {
  const found = recordedOf(letter, file)
  for (const what of sentences(letter, found, historySince)) yield { what, row: rowOf(letter, found) }
}

const rowOf = (letter: FoundRow, { recorded, first, last }: Recorded): FoundRow => ({
  ...{ letter: letter.key, engine: letter.engine, sourceId: letter.sourceId },
  ...{ status: STATUSES[Number(letter.status)] ?? letter.status, version: letter.version, recorded },
  ...(recorded === 0 ? {} : { from: first, to: last }),
})

function* sentences(
  letter: FoundRow,
  { recorded, versions, first, last }: Recorded,
  historySince: bigint,
): Iterable<string> {
  const { key } = letter
  const status = STATUSES[Number(letter.status)]
  if (status === undefined) yield `letter ${key} has status ${letter.status}, which does not exist`
  else if (status !== 'Pending' && letter.part !== null)
    yield `letter ${key} is ${status} and still lies in a dead queue`

  const version = Number(letter.version)
  if (recorded > versions) yield `a transition of letter ${key} is in history twice`
  if (last > version) yield `history has transition ${last} of letter ${key}, which is only at ${version}`
  else if (last < version && isRecent(letter, versions, historySince))
    yield `transition ${version} of letter ${key} is not in history`
  if (versions > 0 && versions < last - first + 1)
    yield `history of letter ${key} has a gap between its transitions ${first} and ${last}`
  // Without the first alone only the capture is missing, which I2 reports.
  if (first > 2 && Number(letter.captured_at) >= historySince)
    yield `the transitions of letter ${key} before the ${first}th are not in history`
}

/** Whether the latest transition must be in history: another one is, or it is known to be recent. */
function isRecent(letter: FoundRow, versions: number, historySince: bigint): boolean {
  // Version 1 is the capture.
  if (Number(letter.version) === 1) return false
  if (versions > 0) return true
  const latest = [letter.captured_at, letter.resolved_at, letter.confirmed_at]
  return latest.some((at) => at !== null && Number(at) >= historySince)
}
