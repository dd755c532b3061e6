/**
 * After a crash: what is held by nobody any more is let go. What was claimed is pending again; of what was being published nobody
 * knows whether it arrived, and it is shown so. Live claims are left alone, whoever has them.
 */
import { type Alarm, later } from '../../core/clock.ts'
import { inOffice } from '../../letters/work.ts'
import { STATE, SYSTEM } from '../event.ts'
import { isClaimOf, letGo, lockHold } from './claim.ts'
import { endUncertain } from './publish.ts'
import { allInFlight, type InFlight, isOver } from './service-queue.ts'
import type { ReturnParts } from './terms.ts'

/** Lets go of one event whose claim is over, unless it is under another by now, or was prolonged. */
export function letLapse(parts: ReturnParts, { letterId, claim, leaseUntil }: InFlight): Promise<void> {
  return inOffice(parts.db, parts.clock, 'kafka.recover', async (work) => {
    const held = await lockHold(work.tx, letterId)
    if (held === null || held.claim !== claim || held.leaseUntil !== leaseUntil) return
    const { eventId, service, state } = held
    if (state === STATE.claimed) {
      await letGo(work.tx, letterId, STATE.pending, eventId)
      return
    }
    if (eventId === null) throw new Error(`letter ${letterId} is being published under no id`)
    await endUncertain(work, held, eventId, {
      caller: SYSTEM,
      details: { event_id: eventId },
      error: 'the server that was publishing it did not say in time what came of it',
    })
    work.afterCommit(() => parts.listener?.trouble?.(service, 'uncertain'))
  })
}

const EVERY_US = 5_000_000n

/** Looks every few seconds for events that somebody held and let go of without a word. */
export class Clerk {
  readonly #parts: ReturnParts
  /** The claims that this process has. */
  readonly #live: ReadonlySet<string>
  #alarm: Alarm | undefined
  #round: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(parts: ReturnParts, live: ReadonlySet<string>) {
    this.#parts = parts
    this.#live = live
  }

  /** A first round now, for what this server held before it ended; then one every few seconds. */
  start(): Promise<void> {
    return this.#look(true)
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
    // A start that failed is made up for.
    let isLeft = isStart
    try {
      await this.#letAllLapse(isStart)
      isLeft = false
    } catch (error) {
      log.warn({ err: error }, 'events that nobody holds any more could not be let go; it is tried again')
    }
    if (this.#isStopped) return
    this.#alarm = clock.alarm(later(clock.now(), EVERY_US), () => void this.#look(isLeft))
  }

  async #letAllLapse(isStart: boolean): Promise<void> {
    const { db, clock, instance } = this.#parts
    const held = await db.session('kafka.inFlight', allInFlight)
    const now = clock.now()
    for (const each of held) {
      // A file has one server at a time: on SQLite whoever held something is gone.
      const isOfBefore = db.dialect === 'sqlite' || isClaimOf(each.claimedBy, instance)
      const isAbandoned = isStart && isOfBefore && !this.#live.has(each.claim)
      if (isAbandoned || isOver(each, now)) await letLapse(this.#parts, each)
    }
  }
}
