/**
 * I11: pending letters are removed only by erasure, and removals are counted. Every captured letter is there or counted as removed;
 * letters that history last saw pending are gone only in the number that were erased; reports of retention and erasures match the
 * counts.
 */
import { instant } from '../../core/clock.ts'
import { formatMicros } from '../../core/timestamp.ts'
import type { OperationKinds } from '../../history/entry.ts'
import { PLAIN_ENGINE } from '../../history/plain-capture.ts'
import type { HistoryStatus } from '../../history/shapes.ts'
import type { Integer } from '../../store/database.ts'
import { NO_LETTER } from '../audit/case-file.ts'
import type { Audit, CaseFile, Finding, FoundRow, Invariant } from '../audit/invariant.ts'
import { batchesOf, read, Sums } from '../audit/walk.ts'
import { ERASE_OPERATION } from '../erase.ts'
import { sourceKinds, sourceNames } from '../kinds.ts'
import { ACTS, OFFICE } from '../letter.ts'
import { type PlaceCounts, readPlaceCounts, summaryOf } from '../numbers/summary.ts'
import { wordsFor } from '../transitions.ts'

/** Reports of the operation kinds `$1`: one row per run of retention and per erasure. */
const readReports = read(
  'removalReports',
  'SELECT series, output FROM bartleby.history WHERE series = ANY($1::int[])',
)

/** The office reports retention, sources report erasures. */
const isReporter = (engine: string): boolean => engine === OFFICE || sourceNames().includes(engine)

export const removals: Invariant = {
  id: 'I11',
  promise: 'no pending letter was removed unless it was erased, and what was removed is counted',
  async ofLetters(audit) {
    const reported = await readReported(audit)
    const gone = new Map<string, Gone>()
    return {
      *look(file) {
        if (file.letter !== undefined) return
        if (file.id === NO_LETTER) return yield* file.captures.map(nameless)
        const last = lastOf(file, audit.operationKinds)
        if (last === undefined || !leavesPending(last)) return
        const { isPlain, status, ...row } = last
        if (isPlain || !reported.erased.has(row.engine))
          yield { what: `letter ${file.id} is gone, and was pending when history last heard of it`, row }
        else {
          const { letters = 0, first = row } = gone.get(row.engine) ?? {}
          gone.set(row.engine, { letters: letters + 1, first })
        }
      },
      async *end() {
        const accounts = await readPlaceCounts(audit.session)
        yield* unaccounted(accounts)
        yield* unerased(reported, gone)
        yield* misreported(reported, removedOfEach(accounts))
      },
    }
  },
}

/** Belongs to no known letter, so nobody can tell whether that is gone. */
const nameless = ({ created_at }: FoundRow): Finding => ({
  what: 'a capture of a plain queue in history names no letter',
  row: { engine: PLAIN_ENGINE, recordedAt: formatMicros(instant(BigInt(created_at ?? 0))) },
})

/** Over all places, because a letter that fails elsewhere moves. */
function* unaccounted(accounts: readonly PlaceCounts[]): Iterable<Finding> {
  const { Pending, Resolved, Expired, captured } = summaryOf(accounts)
  const removed = accounts.reduce((sum, each) => sum + each.removed, 0)
  const known = Pending + Resolved + Expired + removed
  if (known === captured) return
  const row = { Pending, Resolved, Expired, removed, captured }
  yield { what: `${captured} letters were captured, and ${known} are accounted for`, row }
}

function removedOfEach(accounts: readonly PlaceCounts[]): ReadonlyMap<string, number> {
  const sums = new Sums<string>()
  for (const { place, removed } of accounts) sums.add(place.engine, removed)
  return sums
}

/** Sums of the reports that are left. */
interface Reported {
  readonly letters: ReadonlyMap<string, number>
  /** Of these, pending letters that were erased. */
  readonly erased: ReadonlyMap<string, number>
  /** No report is missing: a run that removes history reports that, until a later run removes its report and leaves its own. */
  readonly isWhole: boolean
}

async function readReported(audit: Audit): Promise<Reported> {
  const letters = new Sums<string>()
  const erased = new Sums<string>()
  let history = 0
  const kinds = [...audit.operationKinds]
    .filter(([, { engine, operation }]) => operation === ERASE_OPERATION && isReporter(engine))
    .map(([number]) => number)
  type Report = { readonly series: Integer; readonly output: Uint8Array | null }
  for await (const rows of batchesOf<Report>(audit, readReports, kinds)) {
    for (const { series, output } of rows) {
      const report = reportOf(output)
      for (const [engine, count] of Object.entries(report.letters)) {
        letters.add(engine, count)
        if (audit.operationKinds.get(Number(series))?.engine === engine) erased.add(engine, count)
      }
      history += report.history
    }
  }
  return { letters, erased, isWhole: history === 0 }
}

/** Reports never exceed the counts and, while all are there, equal them. */
function* misreported(
  { letters, isWhole }: Reported,
  removed: ReadonlyMap<string, number>,
): Iterable<Finding> {
  for (const engine of new Set([...letters.keys(), ...removed.keys()])) {
    const reported = letters.get(engine) ?? 0
    const counted = removed.get(engine) ?? 0
    if (isWhole ? reported === counted : reported <= counted) continue
    yield {
      what: `history says that ${reported} letters of engine '${engine}' were removed, and ${counted} are counted`,
      row: { engine, reported, removed: counted },
    }
  }
}

/** The newest history row of a letter that is gone. */
interface Missing {
  readonly letter: number
  readonly engine: string
  readonly version: FoundRow[string]
  readonly operation: string
  readonly status: HistoryStatus
  /** The capture of a plain queue, and nothing else. */
  readonly isPlain: boolean
}

/** Retention removes the oldest rows first. */
function lastOf({ id, transitions, captures }: CaseFile, kinds: OperationKinds): Missing | undefined {
  const [first, ...others] = transitions
  if (first !== undefined) {
    const last = others.reduce((a, b) => (Number(b.version) > Number(a.version) ? b : a), first)
    const label = kinds.get(Number(last.series))
    return label && { letter: id, ...label, version: last.version, isPlain: false }
  }
  const [capture] = captures
  const label = { engine: PLAIN_ENGINE, operation: 'capture', status: 'Succeeded' } as const
  return capture && { letter: id, ...label, version: capture.version, isPlain: true }
}

/** Letters of one engine that are gone and were pending. */
interface Gone {
  readonly letters: number
  readonly first: FoundRow
}

/** As many pending letters are gone as were erased. A report is younger than all history of its letters, so retention removes it last. */
function* unerased({ erased, isWhole }: Reported, gone: ReadonlyMap<string, Gone>): Iterable<Finding> {
  for (const [engine, reported] of erased) {
    const { letters = 0, first } = gone.get(engine) ?? {}
    if (isWhole ? letters === reported : letters <= reported) continue
    yield {
      what: `${letters} letters of engine '${engine}' are gone that were pending, and history says that ${reported} were erased`,
      row: { engine, gone: letters, erased: reported, letter: first?.letter },
    }
  }
}

interface RunReport {
  readonly letters: Readonly<Record<string, number>>
  readonly history: number
}

const NOTHING: RunReport = { letters: {}, history: 0 }

/** Anything that is no report counts as nothing. */
function reportOf(output: Uint8Array | null): RunReport {
  if (output === null) return NOTHING
  try {
    // Written by retention and erasures; other values are filtered below.
    const { letters, history } = JSON.parse(Buffer.from(output).toString('utf8')) as Partial<RunReport>
    const counts = Object.entries(letters ?? {}).filter(([, count]) => Number.isSafeInteger(count))
    return {
      letters: Object.fromEntries(counts),
      history: history !== undefined && Number.isSafeInteger(history) ? history : 0,
    }
  } catch {
    return NOTHING
  }
}

const isAct = (operation: string): boolean =>
  ACTS.some((act) => act === operation) ||
  sourceKinds().some(({ operations = [] }) => operations.includes(operation))
const leadsToPending = (operation: string): boolean =>
  (['capture', 'reopen', 'restore', 'refile'] as const).some((act) => wordsFor(act).includes(operation))

/** Whether the letter was pending after this. A run of an engine stands for the failure or death it caused. */
const leavesPending = ({ operation, status }: Missing): boolean =>
  isAct(operation) ? leadsToPending(operation) : status === 'Failed'
