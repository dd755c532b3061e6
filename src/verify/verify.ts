/**
 * Proves that a store keeps its promises, or shows the rows that break them. Everything is read from one moment of the
 * store, in bounded steps, so that it is exact while servers work on it, and takes no more memory for more letters.
 */
import type { Clock } from '../core/clock.ts'
import { SystemClock } from '../core/system-clock.ts'
import type { Database, Snapshot } from '../store/database.ts'
import { openAudit } from './audit.ts'
import { caseFiles, rowsOfCaseFiles } from './case-file.ts'
import { oneLetter } from './i2-one-letter.ts'
import { oneState } from './i3-one-state.ts'
import { counts } from './i6-counts.ts'
import { captureOrder } from './i9-capture-order.ts'
import { redrives } from './i10-redrives.ts'
import { retention } from './i11-retention.ts'
import type { Audit, Finding, FoundRow, Invariant, LetterCheck, Violation } from './invariant.ts'
import { kafkaEvents } from './kafka-events.ts'
import { kafkaRecords } from './kafka-records.ts'
import { kafkaSends } from './kafka-sends.ts'
import { noCopy, oneRetry, sameBytes } from './letter-items.ts'
import { runs } from './r1-runs.ts'
import { hasBody, requireThisVersion, wholeSchema } from './s1-schema.ts'
import { webhookCounts } from './webhook-counts.ts'
import { deadJobs, jobRangesHold } from './webhook-jobs.ts'

export const INVARIANTS: readonly Invariant[] = [
  oneLetter,
  oneState,
  oneRetry,
  noCopy,
  counts,
  sameBytes,
  captureOrder,
  redrives,
  retention,
  deadJobs,
  webhookCounts,
  jobRangesHold,
  kafkaEvents,
  kafkaRecords,
  kafkaSends,
  runs,
  wholeSchema,
]

/** What was found about one promise. */
export interface InvariantReport {
  readonly invariant: string
  readonly promise: string
  /** How often it is broken; `violations` are the first of these. */
  readonly broken: number
  readonly violations: readonly Violation[]
}

export interface VerifyReport {
  /** Whether every promise is kept. */
  readonly clean: boolean
  readonly invariants: readonly InvariantReport[]
}

export interface VerifyProgress {
  /** What is being checked: a promise, or `letters` for all promises about single letters at once. */
  readonly invariant: string
  /** Rows looked at, of all that is to be checked; `expected` comes from the counts and is nearly right. */
  readonly done: number
  readonly expected: number
}

export interface VerifyOptions {
  readonly onProgress?: (progress: VerifyProgress) => void
  /** Violations that are kept of each invariant; the others are counted. Default 100. */
  readonly limit?: number
  /** The clock of the servers that write to the store. */
  readonly clock?: Clock
  /** Once it is aborted the check ends, on SQLite after the step at hand, with the reason of the abort as its failure. */
  readonly signal?: AbortSignal
}

const DEFAULT_LIMIT = 100

/** Checks every promise on the store as it is now. Reads only. */
export function verifyStore(db: Database, options: VerifyOptions = {}): Promise<VerifyReport> {
  const { onProgress = () => {}, limit = DEFAULT_LIMIT, clock = new SystemClock(), signal } = options
  const check = async (session: Snapshot): Promise<VerifyReport> => {
    await requireThisVersion(session)
    if (!(await hasBody(session))) return onlySchema(session, limit)
    let done = 0
    /** What is planned up to the end of the check at hand: with more rows than estimated, progress waits there. */
    let planned = 0
    let expected = 0
    let current = ''
    const { audit, sizes } = await openAudit(session, clock.now(), (rows) => {
      signal?.throwIfAborted()
      done = Math.min(done + rows, planned)
      onProgress({ invariant: current, done, expected })
    })
    expected = INVARIANTS.reduce((sum, each) => sum + (each.rows?.(sizes) ?? 0), rowsOfCaseFiles(sizes))
    const begin = (label: string, rows: number): void => {
      // Estimates are put right after each.
      done = planned
      planned += rows
      current = label
      onProgress({ invariant: label, done, expected })
    }
    const reports = INVARIANTS.map((invariant) => new Report(invariant, limit))
    begin('letters', rowsOfCaseFiles(sizes))
    await checkLetters(audit, reports)
    for (const report of reports) {
      const { id, rows, check } = report.invariant
      begin(id, rows?.(sizes) ?? 0)
      for await (const finding of check?.(audit) ?? []) report.add(finding)
    }
    onProgress({ invariant: current, done: expected, expected })
    const invariants = reports.map((report) => report.shown())
    return { clean: invariants.every(({ broken }) => broken === 0), invariants }
  }
  return db.snapshot('verify', check, { signal })
}

/** Looks at every letter once, for all checks of letters. */
async function checkLetters(audit: Audit, reports: readonly Report[]): Promise<void> {
  const checks: (readonly [Report, LetterCheck])[] = []
  for (const report of reports) {
    const check = await report.invariant.ofLetters?.(audit)
    if (check !== undefined) checks.push([report, check])
  }
  for await (const file of caseFiles(audit))
    for (const [report, check] of checks) for (const finding of check.look(file)) report.add(finding)
  for (const [report, check] of checks) for await (const finding of check.end?.() ?? []) report.add(finding)
}

/** The report on a store that lacks tables or columns: nothing else can be checked. */
async function onlySchema(session: Snapshot, limit: number): Promise<VerifyReport> {
  const report = new Report(wholeSchema, limit)
  for await (const finding of wholeSchema.check({ session })) report.add(finding)
  return { clean: false, invariants: [report.shown()] }
}

/** What was found so far about one promise. */
class Report {
  readonly invariant: Invariant
  readonly #limit: number
  readonly #violations: Violation[] = []
  #broken = 0

  constructor(invariant: Invariant, limit: number) {
    this.invariant = invariant
    this.#limit = limit
  }

  add({ what, row }: Finding): void {
    this.#broken++
    if (this.#violations.length < this.#limit)
      this.#violations.push({ invariant: this.invariant.id, what, row: shown(row) })
  }

  shown(): InvariantReport {
    const { id: invariant, promise } = this.invariant
    return { invariant, promise, broken: this.#broken, violations: this.#violations }
  }
}

const shown = (row: FoundRow): Violation['row'] =>
  Object.fromEntries(
    Object.entries(row)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, value === null ? '-' : String(value)]),
  )
