/** What a server decides about a redrive that it is at: that it goes on after its canary, pauses, stops or is done. */
import type { Clock } from '../core/clock.ts'
import type { Database } from '../db/database.ts'
import { inOffice } from '../letters/work.ts'
import { holdLanes } from './lanes.ts'
import { isOver, isWorking, type RedriveState } from './redrive.ts'
import { changeRedrive, lockRedrive, type RedriveChange, type StoredRedrive } from './rows.ts'
import { recordAct } from './trail.ts'

export interface Verdict {
  readonly state: Extract<RedriveState, 'running' | 'paused' | 'stopped' | 'done'>
  readonly note: string | null
}

/** Who decides when nobody asked. */
const OFFICE_ACTOR = 'office'

/** Makes the redrive what the verdict says, unless somebody else decided something meanwhile; gives whether it did. */
export function decide(
  db: Database,
  clock: Clock,
  redrive: StoredRedrive,
  owner: string,
  { state, note }: Verdict,
): Promise<boolean> {
  return inOffice(db, clock, 'redrive.decide', async (work) => {
    const { tx, now } = work
    const current = await lockRedrive(tx, redrive.id)
    if (current?.owner !== owner || !isWorking(current.state)) return false
    await holdLanes(tx, current.number)
    const goesOn = state === 'running'
    const change: RedriveChange = {
      state,
      note,
      resumesAs: state === 'paused' ? current.state : null,
      ...(isOver(state) ? { endedAt: now } : {}),
      ...(goesOn ? {} : { owner: null, ownedUntil: null }),
      ...(state === 'paused' ? { canarySentAt: null } : {}),
    }
    await changeRedrive(tx, current, change)
    await recordAct(work, current, { act: VERBS[state], actor: OFFICE_ACTOR, notes: note })
    return true
  })
}

const VERBS = { running: 'go-on', paused: 'pause', stopped: 'stop', done: 'finish' } as const
