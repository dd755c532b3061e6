/**
 * I11: no pending letter was ever removed unless it was erased, and what was removed is counted. Every letter that was captured
 * is still there or counted as removed, history knows of no letter that is gone and was pending last but for as many as were
 * erased, and what the runs of retention and those who erased reported is what is counted.
 */
import type { Integer } from '../db/database.ts'
import { PLAIN_ENGINE } from '../history/plain-capture.ts'
import { type DrawerCount, readLetterCounts } from '../letters/counts.ts'
import { ERASE_OPERATION } from '../letters/erase.ts'
import { ACTS, OFFICE, SOURCE_OPERATIONS, SOURCES, STATUS } from '../letters/letter.ts'
import type { Audit, Finding, FoundRow, Invariant } from './invariant.ts'
import { Sums } from './sums.ts'
import { fault, faultsAlong, HISTORY, PLAIN_CAPTURES, pages, read, rowsAlong } from './walk.ts'

/** The newest row of history of each letter of a range that is gone: one look at a letter for each row. Retention removes the oldest. */
const readLatestOfMissing = read(
  'historyOfMissing',
  `SELECT letter_id AS letter, engine, letter_version AS version, operation, status FROM (
     SELECT record.letter_id, record.letter_version, series.engine, series.operation, series.status,
       row_number() OVER (PARTITION BY record.letter_id ORDER BY record.letter_version DESC) AS place
     FROM bartleby.history AS record JOIN bartleby.history_series AS series ON series.id = record.series
     WHERE record.letter_id > $1 AND record.letter_id <= $2 AND record.letter_version IS NOT NULL
       AND record.correlation_id IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM bartleby.letters
         WHERE letters.id = record.letter_id AND letters.id > $1 AND letters.id <= $2)) AS missing
   WHERE place = 1 ORDER BY letter_id`,
)

/** Captures of the series `$3` within a time whose letter is gone without another word of it. */
const orphans = fault(
  'orphanCaptures',
  `SELECT letter_id AS letter, '${PLAIN_ENGINE}' AS engine, letter_version AS version, 'capture' AS operation
   FROM bartleby.history AS record
   WHERE series = $3 AND created_at > $1 AND created_at <= $2 AND correlation_id IS NULL
     AND (SELECT id FROM bartleby.letters WHERE letters.id = record.letter_id) IS NULL
     AND (SELECT max(id) FROM bartleby.history AS later WHERE later.letter_id = record.letter_id
       AND later.letter_version IS NOT NULL AND later.correlation_id IS NOT NULL) IS NULL`,
  lost,
)

function lost({ letter }: FoundRow): string {
  return `letter ${letter} is gone, and was pending when history last heard of it`
}

/** What was reported as removed, newest last: `$1`, `$2` is the row behind which to start. On the index of the series `$3`. */
const readReports = read(
  'removalReports',
  `SELECT id, created_at, output FROM bartleby.history
   WHERE series = $3 AND (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT 1000`,
)
/** The series of such reports, and of what other engines may call so. Few rows. */
const readReportSeries = read(
  'removalSeries',
  `SELECT id, engine FROM bartleby.history_series WHERE operation = '${ERASE_OPERATION}' ORDER BY id`,
)

/** Retention is the office's; letters are erased by the sources that are engines. */
const REPORTERS: readonly string[] = [OFFICE, ...SOURCES]

export const retention: Invariant = {
  id: 'I11',
  promise: 'no pending letter was removed unless it was erased, and what was removed is counted',
  rows: ({ history }) => history,
  async *check(audit) {
    const counts = await readLetterCounts(audit.session)
    yield* unaccounted(counts)
    const reported = await readReported(audit)
    const gone = new Map<string, Gone>()
    for await (const last of rowsAlong<Missing>(audit, HISTORY, readLatestOfMissing)) {
      const { status, ...row } = last
      if (!leavesPending(last)) continue
      if (!reported.erased.has(row.engine)) yield { what: lost(row), row }
      else {
        const { letters = 0, first = row } = gone.get(row.engine) ?? {}
        gone.set(row.engine, { letters: letters + 1, first })
      }
    }
    yield* unerased(reported, gone)
    yield* faultsAlong(audit, PLAIN_CAPTURES, [orphans], audit.plainSeries ?? 0)
    yield* misreported(reported, removedOfEach(audit, counts))
  },
}

/** Over all drawers: a letter that fails with another error moves to another drawer. */
function* unaccounted(counts: readonly DrawerCount[]): Iterable<Finding> {
  const sum = (wanted: number) =>
    counts.filter(({ status }) => status === wanted).reduce((total, { letters }) => total + letters, 0)
  const totals = Object.entries(STATUS)
    .filter(([name]) => name !== 'unconfirmed')
    .map(([name, status]) => [name, sum(status)] as const)
  const captured = sum(STATUS.captured)
  const known = totals.reduce((total, [name, letters]) => (name === 'captured' ? total : total + letters), 0)
  if (known === captured) return
  const row = Object.fromEntries(totals)
  yield { what: `${captured} letters were captured, and ${known} are accounted for`, row }
}

/** Letters that are counted as removed, by engine. */
function removedOfEach({ drawers }: Audit, counts: readonly DrawerCount[]): ReadonlyMap<string, number> {
  const removed = new Sums<string>()
  for (const { drawer, status, letters } of counts) {
    const engine = drawers.get(drawer)?.engine
    if (status === STATUS.removed && engine !== undefined) removed.add(engine, letters)
  }
  return removed
}

/** What the reports that are still there add up to. */
interface Reported {
  /** Letters by engine. */
  readonly letters: ReadonlyMap<string, number>
  /** How many of them were pending, and erased. */
  readonly erased: ReadonlyMap<string, number>
  /**
   * Whether no report can be missing. A run that removes history, and old reports with it, reports that too; its report
   * stays until another run removes it and leaves its own.
   */
  readonly isWhole: boolean
}

interface ReportRow {
  readonly id: Integer
  readonly created_at: Integer
  readonly output: Uint8Array | null
}

async function readReported({ session }: Audit): Promise<Reported> {
  const letters = new Sums<string>()
  const erased = new Sums<string>()
  let history = 0
  const keyOf = ({ created_at, id }: ReportRow) => [created_at, id]
  for (const series of await session.rows<{ id: Integer; engine: string }>(readReportSeries)) {
    if (!REPORTERS.includes(series.engine)) continue
    for await (const page of pages(session, readReports, [-1n, 0n], keyOf, series.id)) {
      for (const report of page.map(({ output }) => reportOf(output))) {
        for (const [engine, count] of Object.entries(report.letters)) {
          letters.add(engine, count)
          if (series.engine === engine) erased.add(engine, count)
        }
        history += report.history
      }
    }
  }
  return { letters, erased, isWhole: history === 0 }
}

/** Reports never say more than is counted and, while all of them are there, not less. */
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

type Missing = FoundRow & { readonly engine: string; readonly operation: string }

/** Letters of one engine that are gone and were pending last: how many, and the first of them. */
interface Gone {
  readonly letters: number
  readonly first: FoundRow
}

/**
 * Of pending letters as many are gone as were erased. The report of an erasure is younger than all that history has of its letters,
 * so retention never leaves a letter here without its report; it may leave a report without its letters.
 */
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

/** What a row says was removed; one that says nothing of the kind counts as nothing. */
function reportOf(output: Uint8Array | null): RunReport {
  if (output === null) return NOTHING
  try {
    // Written by retention and by those who erase; whatever else is there is not of this form and is left out below.
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

const KNOWN_ACTS: readonly string[] = [...ACTS, ...Object.values(SOURCE_OPERATIONS).flat()]
const TO_PENDING: readonly string[] = [
  'capture',
  'reopen',
  'restore',
  'kafka.received',
  'kafka.reopened',
  'kafka.reassigned',
]

/** Whether the letter was pending after this. A run of an engine stands for what it caused: a failure, a death. */
const leavesPending = ({ operation, status }: Missing): boolean =>
  KNOWN_ACTS.includes(operation) ? TO_PENDING.includes(operation) : Number(status) === 1
