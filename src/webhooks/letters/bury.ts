/**
 * Death of webhook jobs: jobs in flight whose claim still holds become dead, each with its letter, in the transaction of whatever made
 * them die. A job that died before reopens the letter it has; the failures of a first round are filed under the letter's number already.
 * Letters are locked before jobs, both in the order of their ids.
 */
import type { Xid } from '../../core/xid.ts'
import { type Death, noteDeath, type Registers } from '../../letters/death-note.ts'
import type { LetterId } from '../../letters/letter.ts'
import { type CaseRow, lockLettersOf, type Relapse, reopenLetters } from '../../letters/reopen.ts'
import type { OfficeWork } from '../../letters/work.ts'
import type { Tallies } from '../tallies.ts'
import { JOB, WEBHOOKS } from '../webhook.ts'
import {
  captureJobs,
  endLetteredJobs,
  holdDying,
  type JobFacts,
  readDying,
  readFirstFailures,
} from './bury-sql.ts'
import { attemptsBefore } from './rounds.ts'

/** A job in flight that is not tried again. */
export interface DyingJob {
  readonly id: Xid
  readonly claim: string
  readonly exhausted: boolean
  readonly reason: 'attempts' | 'rejected'
  readonly errorClass: string
  readonly errorMessage: string
  /** Where or by whom it failed. */
  readonly failedBy: string
}

/** Makes these jobs dead, as far as their claims still hold; gives those that are. */
export async function buryJobs(
  work: OfficeWork,
  registers: Registers,
  tallies: Tallies,
  dying: readonly DyingJob[],
): Promise<ReadonlySet<Xid>> {
  if (dying.length === 0) return new Set()
  const { tx } = work
  const deaths = new Map(dying.map((each) => [each.id, each]))
  const claims = new Map(dying.map(({ id, claim }) => [id, claim]))
  const found = await readDying(tx, claims)
  const cases = found.flatMap(({ letter }) => letter ?? [])
  const [letters, firsts, held] = await Promise.all([
    lockLettersOf(tx, cases),
    readFirstFailures(tx, cases),
    holdDying(tx, found, claims),
  ])
  const deathOfEach = (job: JobFacts, operation: 'capture' | 'reopen'): Death => {
    const death = deaths.get(job.id)
    if (death === undefined) throw new Error(`job ${job.id} dies of nothing`)
    return deathOf(job, death, operation)
  }
  const exhausted = new Set(dying.filter((each) => each.exhausted).map(({ id }) => id))

  const isKnown = ({ letter }: JobFacts): boolean => letter !== null && letters.has(letter)
  const fresh = held.filter((job) => !isKnown(job))
  const notes = []
  for (const job of fresh) {
    const first = job.letter === null ? undefined : firsts.get(job.letter)
    const times = { capturedAt: work.now, ...(first === undefined ? {} : { firstFailureAt: first }) }
    notes.push(await noteDeath(work, registers, deathOfEach(job, 'capture'), times))
  }
  const known = held.filter(isKnown)
  const relapses = await relapsesOf(work, registers, known, letters, (job) => deathOfEach(job, 'reopen'))
  await Promise.all([
    captureJobs(work, fresh, exhausted, notes),
    endLetteredJobs(tx, work.now, known, exhausted),
    reopenLetters(work, relapses, letters),
  ])
  for (const { consumer } of held) tallies.moved(consumer, JOB.inFlight, JOB.dead)
  return new Set(held.map(({ id }) => id))
}

async function relapsesOf(
  work: OfficeWork,
  registers: Registers,
  jobs: readonly JobFacts[],
  letters: ReadonlyMap<LetterId, CaseRow>,
  deathOfEach: (job: JobFacts) => Death,
): Promise<Relapse[]> {
  // Only a pull consumer takes dead jobs as they are.
  const taken = jobs.flatMap(({ letter, pulls }) => (pulls && letter !== null ? [letter] : []))
  const before = await attemptsBefore(work.tx, taken)
  const relapses: Relapse[] = []
  for (const job of jobs) {
    const letter = job.letter === null ? undefined : letters.get(job.letter)
    if (letter === undefined) continue
    relapses.push({
      letterId: letter.id,
      note: await noteDeath(work, registers, deathOfEach(job), { capturedAt: work.now }),
      diedAs: job.id,
      attempts: job.attempts + 1 - (before.get(letter.id) ?? 0),
      grave: null,
    })
  }
  return relapses
}

const deathOf = (job: JobFacts, death: DyingJob, operation: 'capture' | 'reopen'): Death => ({
  source: WEBHOOKS,
  engine: WEBHOOKS,
  queue: job.queue,
  instanceId: null,
  correlationId: job.messageId,
  reason: death.reason,
  errorClass: death.errorClass,
  errorMessage: death.errorMessage,
  errorStack: null,
  failedBy: death.failedBy,
  record: { operation, status: 'Succeeded', durationMs: 0, actor: job.queue, input: null, output: null },
})
