/**
 * What operators do to redrives. Each is one transaction that holds all lanes: batches at hand are waited for, which takes a moment,
 * and when it returns nothing is sent any more that it forbids.
 */
import { type Instant, later } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import { formatMicros } from '../core/timestamp.ts'
import type { Xid } from '../core/xid.ts'
import type { RedriveAct } from '../letters/letter.ts'
import type { OfficeWork } from '../letters/work.ts'
import { holdLanes } from './lanes.ts'
import { LEASE_US } from './lease.ts'
import type { RedriveState } from './redrive.ts'
import { changeRedrive, lockRedrive, type RedriveChange, type StoredRedrive } from './rows.ts'
import { recordAct } from './trail.ts'

/** How refusals name what was asked for. */
const PARTICIPLES = {
  pause: 'paused',
  resume: 'resumed',
  cancel: 'cancelled',
  rate: 'given another rate',
} as const

/** What an operator wants of a redrive. */
export type RedriveCommand =
  | { readonly act: 'start' | 'resume'; readonly actor: string }
  | { readonly act: 'pause' | 'cancel'; readonly actor: string; readonly reason: string | null }
  | { readonly act: 'rate'; readonly actor: string; readonly rate: number | null }

/** Does it; `owner` is at what is started or resumed from now on, or whoever takes it up. Gives the redrive as it is then. */
export function commandRedrive(
  work: OfficeWork,
  id: Xid,
  command: RedriveCommand,
  owner: string | null,
): Promise<StoredRedrive> {
  const { actor } = command
  switch (command.act) {
    case 'start':
      return startRedrive(work, id, { actor, owner })
    case 'resume':
      return resumeRedrive(work, id, { actor, owner })
    case 'pause':
      return pauseRedrive(work, id, command)
    case 'cancel':
      return cancelRedrive(work, id, command)
    case 'rate':
      return rateRedrive(work, id, command)
  }
}

/** Begins a plan; `owner` is at it from now on, or whoever takes it up. One of any number of equal calls does; the others are told who. */
async function startRedrive(
  work: OfficeWork,
  id: Xid,
  { actor, owner }: { readonly actor: string; readonly owner: string | null },
): Promise<StoredRedrive> {
  const { now } = work
  const redrive = await lock(work, id)
  const { terms, numbers, validUntil, startedAt, startedBy } = redrive
  if (startedAt !== null)
    throw failure('redrive_started', { by: startedBy ?? '', at: formatMicros(startedAt) })
  insistOn(redrive, 'started', ['planned'])
  if (now > validUntil) throw failure('redrive_plan_expired', { at: formatMicros(validUntil) })
  if (numbers.eligible === 0) throw failure('redrive_empty')
  const change = {
    state: terms.canary === null ? 'running' : 'canary',
    startedBy: actor,
    startedAt: now,
    ...heldBy(owner, now),
  } as const
  return commit(work, redrive, change, { act: 'start', actor, notes: redrive.reason })
}

/** Halts a redrive that is under way until it is resumed. */
async function pauseRedrive(
  work: OfficeWork,
  id: Xid,
  { actor, reason }: { readonly actor: string; readonly reason: string | null },
): Promise<StoredRedrive> {
  const redrive = await lock(work, id)
  const { state } = redrive
  insistOn(redrive, PARTICIPLES.pause, ['canary', 'running'])
  const change: RedriveChange = {
    state: 'paused',
    resumesAs: state === 'canary' ? 'canary' : 'running',
    note: reason ?? `by ${actor}`,
    owner: null,
    ownedUntil: null,
  }
  return commit(work, redrive, change, { act: 'pause', actor, notes: reason })
}

/** Goes on where it was; `owner` is at it from now on. A canary waits for its outcomes anew. */
async function resumeRedrive(
  work: OfficeWork,
  id: Xid,
  { actor, owner }: { readonly actor: string; readonly owner: string | null },
): Promise<StoredRedrive> {
  const redrive = await lock(work, id)
  insistOn(redrive, PARTICIPLES.resume, ['paused'])
  const change: RedriveChange = {
    state: redrive.resumesAs ?? 'running',
    resumesAs: null,
    note: null,
    canarySentAt: null,
    ...heldBy(owner, work.now),
  }
  return commit(work, redrive, change, { act: 'resume', actor, notes: null })
}

/** Ends a redrive, or a plan that was not started; what was sent stays sent. */
async function cancelRedrive(
  work: OfficeWork,
  id: Xid,
  { actor, reason }: { readonly actor: string; readonly reason: string | null },
): Promise<StoredRedrive> {
  const redrive = await lock(work, id)
  insistOn(redrive, PARTICIPLES.cancel, ['planned', 'canary', 'running', 'paused'])
  const change: RedriveChange = {
    state: 'cancelled',
    resumesAs: null,
    note: reason ?? `by ${actor}`,
    endedAt: work.now,
    owner: null,
    ownedUntil: null,
  }
  return commit(work, redrive, change, { act: 'cancel', actor, notes: reason })
}

/** Sends at another rate from now on. */
async function rateRedrive(
  work: OfficeWork,
  id: Xid,
  { actor, rate }: { readonly actor: string; readonly rate: number | null },
): Promise<StoredRedrive> {
  const redrive = await lock(work, id)
  const { terms } = redrive
  insistOn(redrive, PARTICIPLES.rate, ['planned', 'canary', 'running', 'paused'])
  const notes = rate === null ? 'no limit' : `${rate} a second`
  return commit(work, redrive, { terms: { ...terms, rate } }, { act: 'rate', actor, notes })
}

const heldBy = (owner: string | null, now: Instant) => ({
  owner,
  ownedUntil: owner === null ? now : later(now, LEASE_US),
})

/** The redrive, which nobody else changes and whose lanes nobody walks before the transaction ends. */
async function lock({ tx }: OfficeWork, id: Xid): Promise<StoredRedrive> {
  const redrive = await lockRedrive(tx, id)
  if (redrive === null) throw failure('redrive_unknown', { id })
  await holdLanes(tx, redrive.number)
  return redrive
}

function insistOn({ state }: StoredRedrive, act: string, needed: readonly RedriveState[]): void {
  if (!needed.includes(state))
    throw failure('redrive_state_wrong', { act, state, needed: needed.join(' or ') })
}

async function commit(
  work: OfficeWork,
  redrive: StoredRedrive,
  change: RedriveChange,
  { act, actor, notes }: { readonly act: RedriveAct; readonly actor: string; readonly notes: string | null },
): Promise<StoredRedrive> {
  await changeRedrive(work.tx, redrive, change)
  await recordAct(work, redrive, { act, actor, notes })
  return { ...redrive, ...change }
}
