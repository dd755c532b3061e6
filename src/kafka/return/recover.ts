/**
 * After a crash: what is held by nobody any more is let go. What was claimed is pending again; of what was being published nobody
 * knows whether it arrived, and it is shown so. Live claims are left alone, whoever has them.
 */
import { type Alarm, later } from '../../core/clock.ts'
import { inOffice } from '../../letters/work.ts'
import { STATE, SYSTEM } from '../event.ts'
import { SEND } from '../send.ts'
import { isClaimOf } from './claim.ts'
import { letGo, lockHold } from './hold.ts'
import type { ReturnParts } from './parts.ts'
import { allFlying, type Flying, isOver } from './seek.ts'
import { noteSendEnd } from './sends.ts'
import { note } from './trail.ts'

export interface Recovery {
  /** Whether this server begins: what it held itself, before it ended, is over. */
  readonly isStart: boolean
  /** The claims that this process has. */
  readonly live: ReadonlySet<string>
}

/** Lets go of all whose claims are over. */
export async function recover(parts: ReturnParts, { isStart, live }: Recovery): Promise<void> {
  const { db, clock, instance } = parts
  const flying = await db.session('kafka.inFlight', allFlying)
  const now = clock.now()
  for (const each of flying) {
    // A file has one server at a time: on SQLite whoever held something is gone.
    const isOfBefore = db.dialect === 'sqlite' || isClaimOf(each.claimedBy, instance)
    if ((isStart && isOfBefore && !live.has(each.claim)) || isOver(each, now)) await letLapse(parts, each)
  }
}

/** Lets go of one event whose claim is over, unless it is under another by now, or was prolonged. */
export function letLapse(parts: ReturnParts, { letterId, claim, leaseUntil }: Flying): Promise<void> {
  return inOffice(parts.db, parts.clock, 'kafka.recover', async (work) => {
    const { tx, now } = work
    const hold = await lockHold(tx, letterId)
    if (hold === null || hold.claim !== claim || hold.leaseUntil !== leaseUntil) return
    if (hold.state === STATE.claimed) return letGo(tx, letterId, STATE.pending, hold.eventId)
    const { eventId, service } = hold
    if (eventId === null) throw new Error(`letter ${letterId} is being published under no id`)
    await noteSendEnd(tx, now, eventId, SEND.uncertain)
    await letGo(tx, letterId, STATE.uncertain, eventId)
    const error = 'the server that was publishing it did not say in time what came of it'
    await note(work, hold, { operation: 'uncertain', caller: SYSTEM, details: { event_id: eventId }, error })
    work.afterCommit(() => parts.listener?.trouble?.(service, 'uncertain'))
  })
}

const EVERY_US = 5_000_000n

/** Looks every few seconds for events that somebody held and let go of without a word. */
export class Clerk {
  readonly #parts: ReturnParts
  readonly #live: ReadonlySet<string>
  #alarm: Alarm | undefined
  #round: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(parts: ReturnParts, live: ReadonlySet<string>) {
    this.#parts = parts
    this.#live = live
  }

  /** A first round now, for what this server held before; then one every few seconds. */
  async start(): Promise<void> {
    await this.#look(true)
  }

  /** Ends after the round at hand. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#alarm?.cancel()
    await this.#round
  }

  #look(isStart: boolean): Promise<void> {
    this.#round = this.#recover(isStart)
    return this.#round
  }

  async #recover(isStart: boolean): Promise<void> {
    const { clock, log } = this.#parts
    let isDone = false
    try {
      await recover(this.#parts, { isStart, live: this.#live })
      isDone = true
    } catch (error) {
      log.warn({ err: error }, 'events that nobody holds any more could not be let go; it is tried again')
    }
    if (this.#isStopped) return
    // A start that failed is made up for.
    this.#alarm = clock.alarm(later(clock.now(), EVERY_US), () => void this.#look(isStart && !isDone))
  }
}
