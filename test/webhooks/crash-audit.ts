/**
 * Compares what the store says about every job with what the receiver saw of it. What a killed server did last it could not write down:
 * those calls may be made again, and so may those of a server that was too slow for its claims; the latter are counted.
 */

import { JOB } from '../../src/sources/webhooks/webhook.ts'
import type { Database } from '../../src/store/database.ts'
import { type JobRow, jobsIn } from '../world/webhooks/rows.ts'
import { type Call, CONSUMERS, jobOf, type Record, SHAKY } from './crash-recorder.ts'

type StateName = keyof typeof JOB

/** How many jobs are in each state. */
export async function jobStates(db: Database): Promise<{ readonly [Name in StateName]: number }> {
  const jobs = await jobsIn(db)
  const of = (name: StateName) => jobs.filter(({ state }) => state === JOB[name]).length
  return {
    later: of('later'),
    ready: of('ready'),
    inFlight: of('inFlight'),
    delivered: of('delivered'),
    dead: of('dead'),
  }
}

export interface AuditTerms {
  readonly record: Record
  /** The ids of all messages. */
  readonly messages: readonly string[]
  readonly maxRetry: number
  /** When servers were killed, by their names. */
  readonly killedMs: ReadonlyMap<string, number>
}

export interface Findings {
  readonly problems: readonly string[]
  readonly dead: number
  /** Calls whose servers were killed then, or soon after: what came of them may be lost. */
  readonly lostCalls: number
  /** Calls that were made again although their servers went on: they were too slow to write down what came of them. */
  readonly lateCalls: number
}

/** Before that, what was answered to a server that was killed had been written down. */
const WRITTEN_MS = 2_000
const TOLERANCE_MS = 50

/** Every job of every message is there once, delivered or dead; and what the receiver saw of it is what the store says. */
export async function auditJobs(db: Database, terms: AuditTerms): Promise<Findings> {
  const { record, messages } = terms
  const rows = await jobsIn(db)
  const problems = [...record.violations]
  const missing = new Set(messages.flatMap((id) => CONSUMERS.map((consumer) => jobOf(consumer, id))))
  let dead = 0
  let lostCalls = 0
  let lateCalls = 0
  for (const row of rows) {
    const name = jobOf(row.consumerId, row.messageId)
    if (!missing.delete(name)) problems.push(`${name}: is there twice, or was never sent`)
    const calls = record.calls.get(name) ?? []
    const lost = calls.filter((call) => mayBeLost(call, terms.killedMs))
    lostCalls += lost.length
    lateCalls += lateCallsOf(row, calls, lost, terms)
    if (row.state === JOB.dead) dead += 1
    for (const problem of problemsOf(row, calls, terms))
      problems.push(`${name}: ${problem}; ${calls.map((call) => tellOf(call, terms.killedMs)).join(', ')}`)
  }
  for (const name of missing) problems.push(`${name}: is missing`)
  return { problems, dead, lostCalls, lateCalls }
}

const wasReceived = ({ status }: Call): boolean => status !== null && status < 300

function mayBeLost({ server, endedMs }: Call, killedMs: AuditTerms['killedMs']): boolean {
  const killed = killedMs.get(server)
  return killed !== undefined && (endedMs === null || endedMs > killed - WRITTEN_MS)
}

/** Successes that nobody wrote down, and retries beyond the last: only a claim that lapses adds one without ending the job. */
function lateCallsOf(
  row: JobRow,
  calls: readonly Call[],
  lost: readonly Call[],
  { maxRetry }: AuditTerms,
): number {
  const isWritten = row.state === JOB.delivered
  const unwritten = calls.filter(wasReceived).length - (isWritten ? 1 : 0)
  const beyond = row.attempts - maxRetry
  return Math.max(0, unwritten - lost.length, beyond - lost.length)
}

function* problemsOf(
  row: JobRow,
  calls: readonly Call[],
  { maxRetry, record }: AuditTerms,
): Generator<string> {
  const { state, attempts, claim } = row
  if (claim !== null) yield 'is still claimed'
  // Every call but the last is a retry that is on the books.
  if (calls.length > attempts + 1) yield `was called ${calls.length} times with ${attempts} retries`
  if (state === JOB.delivered) {
    if (!calls.some(wasReceived)) yield 'is delivered and was never received'
  } else if (state !== JOB.dead) yield `is in state ${state}`
  else if (row.consumerId !== SHAKY) yield 'died of its servers'
  else if (attempts < maxRetry || !row.exhausted) yield `died after ${attempts} retries`
  const tolerance = TOLERANCE_MS + record.longestLagMs
  for (const [i, call] of calls.entries()) {
    const before = calls[i - 1]?.endedMs
    // The delays of a list with one second: a second more each time.
    if (before != null && call.beganMs - before < i * 1_000 - tolerance)
      yield `was called again after ${Math.round(call.beganMs - before)} ms, for the ${i + 1}th time`
  }
}

function tellOf({ server, beganMs, endedMs, status }: Call, killedMs: AuditTerms['killedMs']): string {
  const [began, ended, killed] = [beganMs, endedMs, killedMs.get(server)].map((ms) => ms && Math.round(ms))
  return `${server} ${began}–${ended} ${status ?? 'broken'}${killed === undefined ? '' : ` (killed ${killed})`}`
}
