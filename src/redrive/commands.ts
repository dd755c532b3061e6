/**
 * Everything done to a redrive as a whole, by operators or by the server that drives it. Each act is one transaction that changes the
 * redrive and its run together and leaves a row in history.
 *
 * Lock order: run, redrive, lanes. Locking the lanes waits for running batches, so nothing is sent afterwards that the act forbids.
 */
import { storableText } from '../core/content.ts'
import { failure } from '../core/errors.ts'
import { formatMicros } from '../core/timestamp.ts'
import type { Xid } from '../core/xid.ts'
import { recordHistory } from '../history/record.ts'
import { OFFICE, type RedriveAct } from '../letters/letter.ts'
import type { OfficeRuns, OfficeWork } from '../letters/work.ts'
import { keptLease, noteOf, type RunCommand } from '../work/run.ts'
import { changeRun, lockRun, type Run, type RunChange } from '../work/run-rows.ts'
import type { RunState } from '../work/shapes.ts'
import { isOver, isWorking, REDRIVE_RUN, type RedriveCounts, type RedriveState } from './redrive.ts'
import { readProgress } from './rows/counts.ts'
import { holdLanes } from './rows/lanes.ts'
import { lockRedrive, type StoredRedrive, writeRedrive } from './rows/rows.ts'

export type RedriveCommand = RunCommand | { readonly act: 'start'; readonly actor: string }

/** States that allow a command, and its name in refusals. */
const COMMANDS: Readonly<
  Record<RedriveCommand['act'], { readonly words: string; readonly needs: readonly RedriveState[] }>
> = {
  start: { words: 'started', needs: ['planned'] },
  pause: { words: 'paused', needs: ['canary', 'running'] },
  resume: { words: 'resumed', needs: ['paused'] },
  cancel: { words: 'cancelled', needs: ['planning', 'planned', 'canary', 'running', 'paused'] },
  rate: { words: 'given another rate', needs: ['planned', 'canary', 'running', 'paused'] },
}

/** Carries out a command; gives the redrive and its run afterwards. Of equal starts one succeeds; the others learn who it was. */
export async function commandRedrive(
  work: OfficeWork,
  runs: OfficeRuns,
  id: Xid,
  command: RedriveCommand,
): Promise<{ readonly redrive: StoredRedrive; readonly run: Run | null }> {
  const { tx, now } = work
  let run = await lockRun(tx, id)
  const redrive = await lockRedrive(tx, id)
  if (redrive === null) throw failure('redrive_unknown', { id })
  await holdLanes(tx, redrive.number)
  if (command.act === 'start') insistOnStart(redrive, work)
  const { words, needs } = COMMANDS[command.act]
  const { state } = redrive
  if (!needs.includes(state))
    throw failure('redrive_state_wrong', { act: words, state, needed: needs.join(' or ') })
  const changed = { ...redrive, ...changeBy(redrive, command, work) }
  await writeRedrive(tx, changed)
  const { act, actor } = command
  const notes = command.act === 'start' ? redrive.reason : noteOf(command).notes
  const counts = await record(work, redrive, { act, actor, notes })
  if (act === 'start') {
    run = await runs.begin(work, {
      ...{ id, kind: REDRIVE_RUN, about: `${redrive.action} of letters`, subject: {}, place: null },
      ...{ actor, expected: redrive.numbers.eligible, rate: redrive.terms.rate },
    })
  } else if (run !== null) {
    const followed = follow(work, run, changed, counts, act === 'resume' ? runs.leaseAt(now) : null)
    work.afterCommit(() => runs.changed(followed))
    run = followed
  }
  const owner = run?.owner ?? null
  return { redrive: { ...changed, owner, isHeld: owner !== null, rateMeasured: run?.rateNow ?? null }, run }
}

function insistOnStart(
  { startedAt, startedBy, validUntil, numbers, state }: StoredRedrive,
  { now }: OfficeWork,
): void {
  if (startedAt !== null)
    throw failure('redrive_started', { by: startedBy ?? '', at: formatMicros(startedAt) })
  if (state !== 'planned') return
  if (now > validUntil) throw failure('redrive_plan_expired', { at: formatMicros(validUntil) })
  if (numbers.eligible === 0) throw failure('redrive_empty')
}

function changeBy(
  { state, terms, resumesAs }: StoredRedrive,
  command: RedriveCommand,
  { now }: OfficeWork,
): Partial<StoredRedrive> {
  const { act, actor } = command
  switch (act) {
    case 'start':
      return { state: terms.canary === null ? 'running' : 'canary', startedBy: actor, startedAt: now }
    case 'pause':
      return {
        state: 'paused',
        resumesAs: state === 'canary' ? 'canary' : 'running',
        note: command.reason ?? `by ${actor}`,
      }
    case 'resume':
      // A canary waits for its outcomes again.
      return { state: resumesAs ?? 'running', resumesAs: null, note: null, canarySentAt: null }
    case 'cancel':
      return { state: 'cancelled', resumesAs: null, note: command.reason ?? `by ${actor}`, endedAt: now }
    case 'rate':
      return { terms: { ...terms, rate: command.rate } }
  }
}

export interface Verdict {
  readonly state: Extract<RedriveState, 'running' | 'paused' | 'stopped' | 'done'>
  readonly note: string | null
}

const VERBS = { running: 'go-on', paused: 'pause', stopped: 'stop', done: 'finish' } as const

/** Applies the verdict, unless somebody else decided meanwhile; gives whether it did. */
export async function decide(
  work: OfficeWork,
  id: Xid,
  owner: string,
  { state, note }: Verdict,
): Promise<boolean> {
  const { tx, now } = work
  const run = await lockRun(tx, id)
  const redrive = await lockRedrive(tx, id)
  if (run?.owner !== owner || redrive === null || !isUnderWay(redrive)) return false
  await holdLanes(tx, redrive.number)
  const changed = {
    ...redrive,
    ...{ state, note, resumesAs: state === 'paused' && isWorking(redrive.state) ? redrive.state : null },
    endedAt: isOver(state) ? now : null,
    canarySentAt: state === 'paused' ? null : redrive.canarySentAt,
  }
  await writeRedrive(tx, changed)
  const counts = await record(work, redrive, { act: VERBS[state], actor: OFFICE, notes: note })
  follow(work, run, changed, counts)
  return true
}

const isUnderWay = ({ state }: StoredRedrive): boolean => isWorking(state) || state === 'planning'

/** The state of the run of a redrive. A plan that was not started has no run. */
export const RUN_STATES: Readonly<Partial<Record<RedriveState, RunState>>> = {
  ...{ planning: 'running', canary: 'running', running: 'running' },
  ...{ paused: 'paused', done: 'done', stopped: 'failed', cancelled: 'cancelled' },
}

/** Makes the run follow its redrive in state and counts. The progress of a plan is in its run alone. */
function follow(
  { tx, now }: OfficeWork,
  run: Run,
  redrive: StoredRedrive,
  { sent, skipped, failed }: RedriveCounts,
  resumedBy: RunChange['lease'] | null = null,
): Run {
  const { note, endedAt, terms } = redrive
  const state = RUN_STATES[redrive.state] ?? run.state
  const lease = resumedBy ?? keptLease({ owner: run.owner, state }, now)
  return changeRun(tx, run, {
    ...{ state, note, endedAt, rate: terms.rate, lease },
    ...(run.kind === REDRIVE_RUN ? { done: sent, skipped, failed } : {}),
    rateNow: lease.owner === null ? null : run.rateNow,
    version: run.version + 1,
  })
}

/** Records an act in history with the counts of that moment, which it returns. */
async function record(
  { tx, now }: OfficeWork,
  redrive: StoredRedrive,
  { act, actor, notes }: { readonly act: RedriveAct; readonly actor: string; readonly notes: string | null },
): Promise<RedriveCounts> {
  const { counts } = await readProgress(tx, redrive)
  await recordHistory(tx, [
    {
      ...{ engine: OFFICE, operation: `redrive.${act}`, status: 'Succeeded' },
      ...{ instanceId: null, correlationId: redrive.id, createdAt: now, durationMs: 0 },
      ...{ actor: storableText(actor), notes: storableText(notes) },
      output: Buffer.from(JSON.stringify({ action: redrive.action, ...counts })),
    },
  ])
  return counts
}
