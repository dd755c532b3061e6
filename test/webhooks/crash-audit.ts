/**
 * Compares what the store says about every job with what the receiver saw of it. What a killed server did last it could not write down:
 * those calls are the only ones that may be made again.
 */
import type { Database, Integer } from '../../src/db/database.ts'
import { sql } from '../../src/db/database.ts'
import { JOB } from '../../src/webhooks/webhook.ts'
import { type Call, CONSUMERS, type CrashRecorder, SHAKY } from './crash-recorder.ts'

const readJobs = sql(
  'test.crash.jobs',
  `SELECT job.id, job.state, job.attempts, job.exhausted, job.claim, consumer.consumer_id, message.message_id
   FROM bartleby.webhook_jobs AS job
   JOIN bartleby.webhook_consumers AS consumer ON consumer.number = job.consumer
   JOIN bartleby.webhook_messages AS message ON message.id = job.message`,
)
const countStates = sql(
  'test.crash.states',
  'SELECT state, count(*) AS jobs FROM bartleby.webhook_jobs GROUP BY state',
)

interface Row {
  readonly id: string
  readonly state: Integer
  readonly attempts: Integer
  readonly exhausted: Integer
  readonly claim: string | null
  readonly consumer_id: string
  readonly message_id: string
}

/** How many jobs are in each state. */
export async function jobStates(db: Database): Promise<Readonly<Record<keyof typeof JOB, number>>> {
  const counts = { later: 0, ready: 0, inFlight: 0, delivered: 0, dead: 0 }
  const rows = await db.session('test', (session) =>
    session.rows<{ state: Integer; jobs: Integer }>(countStates),
  )
  for (const { state, jobs } of rows) {
    // The names are those of the states.
    for (const name of Object.keys(JOB) as (keyof typeof JOB)[])
      if (JOB[name] === Number(state)) counts[name] = Number(jobs)
  }
  return counts
}

export interface AuditTerms {
  readonly recorder: CrashRecorder
  /** The ids of all messages. */
  readonly messages: readonly string[]
  readonly delivery: { readonly maxRetry: number; readonly timeoutSeconds: number }
  /** When servers were killed, by their names. */
  readonly killedMs: ReadonlyMap<string, number>
}

/** What was found, of jobs that are all delivered or dead. */
export interface Findings {
  readonly problems: readonly string[]
  readonly dead: number
  /** Calls whose servers were killed then, or soon after: what came of them may be lost. */
  readonly lostCalls: number
  /** Calls whose servers may have been too slow to write down in time what came of them. */
  readonly lateCalls: number
}

/** Before that, what was answered to a server that was killed had been written down. */
const WRITTEN_MS = 2_000
/** Ends of calls are seen a little late when the receiver is busy. */
const TOLERANCE_MS = 50

/** Every job of every message, once; and what the receiver saw of it is what the store says. */
export async function auditJobs(db: Database, terms: AuditTerms): Promise<Findings> {
  const { recorder, messages } = terms
  const rows = await db.session('test', (session) => session.rows<Row>(readJobs))
  const problems = [...recorder.violations]
  const missing = new Set(messages.flatMap((id) => CONSUMERS.map((consumer) => `${consumer} ${id}`)))
  let dead = 0
  let lostCalls = 0
  let lateCalls = 0
  for (const row of rows) {
    const name = `${row.consumer_id} ${row.message_id}`
    if (!missing.delete(name)) problems.push(`${name}: is there twice, or was never sent`)
    const calls = recorder.callsOf(row.consumer_id, row.message_id)
    const lost = calls.filter((call) => mayBeLost(call, terms.killedMs))
    const late = calls.filter((call, i) => !lost.includes(call) && wasLate(call, i + 1, calls[i + 1], terms))
    lostCalls += lost.length
    lateCalls += late.length
    if (Number(row.state) === JOB.dead) dead += 1
    for (const problem of problemsOf(row, calls, lost.length + late.length, terms))
      problems.push(`${name}: ${problem}; ${calls.map((call) => tellOf(call, terms.killedMs)).join(', ')}`)
  }
  for (const name of missing) problems.push(`${name}: is missing`)
  return { problems, dead, lostCalls, lateCalls }
}

function mayBeLost({ server, endedMs }: Call, killedMs: AuditTerms['killedMs']): boolean {
  const killed = killedMs.get(server)
  return killed !== undefined && (endedMs === null || endedMs > killed - WRITTEN_MS)
}

/**
 * Whether the claim of a call may have been over when it was made again: no attempt begins when less than half of its time is left, and
 * a job that was left waits for the delay of a failed one.
 */
function wasLate({ beganMs }: Call, nth: number, next: Call | undefined, { delivery }: AuditTerms): boolean {
  if (next === undefined) return false
  return next.beganMs - beganMs >= (delivery.timeoutSeconds / 2 + nth) * 1_000
}

function tellOf({ server, beganMs, endedMs, status }: Call, killedMs: AuditTerms['killedMs']): string {
  const [began, ended, killed] = [beganMs, endedMs, killedMs.get(server)].map((ms) => ms && Math.round(ms))
  return `${server} ${began}–${ended} ${status ?? 'broken'}${killed === undefined ? '' : ` (killed ${killed})`}`
}

function* problemsOf(
  row: Row,
  calls: readonly Call[],
  lost: number,
  { delivery: { maxRetry } }: AuditTerms,
): Generator<string> {
  const { state, attempts, claim } = row
  const received = calls.filter(({ status }) => status !== null && status < 300).length
  if (claim !== null) yield 'is still claimed'
  if (calls.length > maxRetry + 1 + lost) yield `was called ${calls.length} times, ${lost} of them in vain`
  if (calls.length > Number(attempts) + 1) yield `was called ${calls.length} times with ${attempts} retries`
  if (received > 1 + lost) yield `was received ${received} times`
  if (Number(state) === JOB.delivered) {
    if (received === 0) yield 'is delivered and was never received'
  } else if (Number(state) !== JOB.dead) yield `is in state ${state}`
  else if (row.consumer_id !== SHAKY) yield 'died of its servers'
  else if (Number(attempts) < maxRetry || Number(row.exhausted) !== 1) yield `died after ${attempts} retries`
  else if (received > lost) yield 'is dead and was received'
  for (const [i, call] of calls.entries()) {
    const before = calls[i - 1]?.endedMs
    // The delays of a list with one second: a second more each time.
    if (before != null && call.beganMs - before < i * 1_000 - TOLERANCE_MS)
      yield `was called again after ${Math.round(call.beganMs - before)} ms, for the ${i + 1}th time`
  }
}
