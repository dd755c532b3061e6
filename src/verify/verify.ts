/** Proves that a store keeps its promises, or shows the rows that break them: one moment of the store, in bounded steps, in bounded memory. */
import type { Clock } from '../core/clock.ts'
import { SystemClock } from '../core/system-clock.ts'
import { openAudit } from '../letters/audit/audit.ts'
import { caseFiles, rowsOfCaseFiles } from '../letters/audit/case-file.ts'
import type {
  Audit,
  CountedSide,
  Finding,
  FoundRow,
  Invariant,
  LetterCheck,
} from '../letters/audit/invariant.ts'
import { letterCounts } from '../letters/invariants/counts.ts'
import { oneLetter } from '../letters/invariants/one-letter.ts'
import { oneState } from '../letters/invariants/one-state.ts'
import { removals } from '../letters/invariants/removals.ts'
import { requireThisVersion } from '../migrations.ts'
import { queueInvariants } from '../queues/invariants.ts'
import { redriveInvariants, redriveRuns } from '../redrive/invariants.ts'
import { SOURCES } from '../sources/index.ts'
import type { Database, Snapshot } from '../store/database.ts'
import { hasBody, wholeSchema } from '../store/schema/parts.ts'
import { runs } from '../work/invariants.ts'

const numberOf = ({ id }: Invariant): number => Number(id.slice(1))

/** Letters in the order of their numbers, then sources, runs and the store itself. */
export const INVARIANTS: readonly Invariant[] = [
  ...[oneLetter, oneState, letterCounts, removals, ...queueInvariants, ...redriveInvariants].toSorted(
    (a, b) => numberOf(a) - numberOf(b),
  ),
  ...SOURCES.flatMap(({ invariants = [] }) => invariants),
  ...[runs, redriveRuns],
  wholeSchema,
]

const BESIDE: Readonly<Record<string, CountedSide>> = Object.assign(
  {},
  ...INVARIANTS.map(({ beside }) => beside),
)

export interface Violation {
  /** For example 'I6'. */
  readonly invariant: string
  readonly what: string
  /** Enough to find the row. */
  readonly row: Readonly<Record<string, string>>
}

export interface InvariantReport {
  readonly invariant: string
  readonly promise: string
  /** All of them; `violations` are the first. */
  readonly broken: number
  readonly violations: readonly Violation[]
}

/** A report while it is being made. */
type Found = Pick<InvariantReport, 'invariant' | 'promise'> & { broken: number; violations: Violation[] }

const nothingFound = ({ id, promise }: Pick<Invariant, 'id' | 'promise'>): Found => ({
  ...{ invariant: id, promise, broken: 0, violations: [] },
})

export interface VerifyReport {
  readonly clean: boolean
  readonly invariants: readonly InvariantReport[]
}

export interface VerifyProgress {
  /** An invariant's id, or `letters` for all checks of single letters. */
  readonly invariant: string
  /** Rows; `expected` is an estimate from the counts. */
  readonly done: number
  readonly expected: number
}

export interface VerifyOptions {
  readonly onProgress?: (progress: VerifyProgress) => void
  /** Violations kept per invariant; others are only counted. Default 100. */
  readonly limit?: number
  /** The clock of the servers that write to the store. */
  readonly clock?: Clock
  /** Aborts the check, on SQLite after the current step, with the reason as its failure. */
  readonly signal?: AbortSignal
}

const DEFAULT_LIMIT = 100

/** Reads only. */
export function verifyStore(db: Database, options: VerifyOptions = {}): Promise<VerifyReport> {
  const { onProgress = () => {}, limit = DEFAULT_LIMIT, clock = new SystemClock(), signal } = options
  const check = async (session: Snapshot): Promise<VerifyReport> => {
    await requireThisVersion(session)
    if (!(await hasBody(session))) return onlySchema(session, limit)
    let done = 0
    /** Progress waits here when a check has more rows than estimated. */
    let planned = 0
    let expected = 0
    let current = ''
    const audit = await openAudit(session, clock.now(), (rows) => {
      signal?.throwIfAborted()
      done = Math.min(done + rows, planned)
      onProgress({ invariant: current, done, expected })
    })
    const rowsOfLetters = await rowsOfCaseFiles(audit, BESIDE)
    const rowsOf = new Map<Invariant, number>()
    for (const each of INVARIANTS) rowsOf.set(each, (await each.rows?.(audit)) ?? 0)
    expected = [...rowsOf.values()].reduce((sum, rows) => sum + rows, rowsOfLetters)
    const begin = (label: string, rows: number): void => {
      // Estimates are corrected after each check.
      done = planned
      planned += rows
      current = label
      onProgress({ invariant: label, done, expected })
    }
    const reports = new Map(INVARIANTS.map((each) => [each.id, nothingFound(each)]))
    const found = (id: string, finding: Finding): void => {
      const report = reports.get(id)
      if (report !== undefined) add(report, finding, limit)
    }
    begin('letters', rowsOfLetters)
    await checkLetters(audit, found)
    for (const [invariant, rows] of rowsOf) {
      begin(invariant.id, rows)
      for await (const finding of invariant.check?.(audit) ?? []) found(invariant.id, finding)
    }
    onProgress({ invariant: current, done: expected, expected })
    const invariants = [...reports.values()]
    return { clean: invariants.every(({ broken }) => broken === 0), invariants }
  }
  return db.snapshot('verify', check, { signal })
}

/** One pass over all letters, for all their checks. */
async function checkLetters(audit: Audit, add: (id: string, finding: Finding) => void): Promise<void> {
  const checks: (readonly [id: string, LetterCheck])[] = []
  for (const { id, ofLetters } of INVARIANTS) {
    const check = await ofLetters?.(audit)
    if (check !== undefined) checks.push([id, check])
  }
  for await (const file of caseFiles(audit, BESIDE))
    for (const [id, check] of checks) for (const finding of check.look(file)) add(id, finding)
  for (const [id, check] of checks) for await (const finding of check.end?.() ?? []) add(id, finding)
}

/** Without all tables and columns nothing else can be checked. */
async function onlySchema(session: Snapshot, limit: number): Promise<VerifyReport> {
  const report = nothingFound(wholeSchema)
  for await (const finding of wholeSchema.check({ session })) add(report, finding, limit)
  return { clean: false, invariants: [report] }
}

/** Counts a finding, and keeps the first `limit`. */
function add(report: Found, { what, row }: Finding, limit: number): void {
  report.broken++
  if (report.violations.length < limit)
    report.violations.push({ invariant: report.invariant, what, row: shown(row) })
}

const shown = (row: FoundRow): Violation['row'] =>
  Object.fromEntries(
    Object.entries(row)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, value === null ? '-' : String(value)]),
  )
