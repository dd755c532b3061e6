/**
 * How dead events leave. Calls on one service come one after the other: within this server in the order in which they were made,
 * and among servers as the store has it, where one event of a service is in flight at a time. Whoever gets no turn in time is told.
 *
 * After a crash, what is held by nobody any more is let go. What was claimed is pending again; of what was being published nobody
 * knows whether it arrived, and it is shown so. Live claims are left alone, whoever has them.
 */

import { type BackoffPolicy, backoffDelayMs } from '../../../core/backoff.ts'
import { Rounds } from '../../../core/rounds.ts'
import { sleep } from '../../../core/waiting.ts'
import { inOffice } from '../../../letters/work.ts'
import { type Caller, STATE, SYSTEM } from '../event.ts'
import { isUuid } from '../settings/settings.ts'
import { eventNamed, type StoredEvent } from '../stored-event.ts'
import { attempt, type Ended, rehearse } from './attempt.ts'
import { discardEvent, isClaimOf, letGo, lockClaim } from './claim.ts'
import { endUncertain } from './publish.ts'
import {
  type Again,
  allInFlight,
  type InFlight,
  inFlightOf,
  inTheWay,
  isOpen,
  isOver,
  locate,
  lockEvent,
  ServiceQueues,
} from './service-queue.ts'
import type { Obstacle, QueueHead, ReturnParts, Target, Terms } from './terms.ts'

/** One door for whoever asks: calls on queues, the office's retry and redrives differ in target and terms. What was in the way is a value. */
export class ReturnPath {
  readonly #parts: ReturnParts
  readonly #queues = new ServiceQueues()
  /** The tokens of the claims that this process has. */
  readonly #live = new Set<string>()
  readonly #calls = new Set<Promise<unknown>>()
  readonly #stopped = new AbortController()
  readonly #recovery: Rounds

  constructor(parts: ReturnParts) {
    this.#parts = parts
    this.#recovery = recovery(parts, this.#live)
  }

  /** Recovers what this server held when it ended, and from now on what others leave. */
  async start(): Promise<void> {
    await this.#recovery.now()
    this.#recovery.start()
  }

  /** What is done every so often, for whoever watches over that. */
  get rounds(): readonly Rounds[] {
    return [this.#recovery]
  }

  /** Ends when no call is under way any more; those that wait for their turn are refused. */
  async stop(): Promise<void> {
    this.#stopped.abort(new Error('the server stops'))
    await Promise.all([this.#recovery.stop(), Promise.allSettled(this.#calls)])
  }

  /** Sends an event back: the next of a queue, or that of a letter. */
  send(target: Target, terms: Terms): Promise<Ended> {
    return this.#inTurn(target.service, () => attempt(this.#parts, this.#live, target, terms))
  }

  /** How that would end. Writes nothing. */
  rehearse(target: Target, terms: Terms): Promise<Ended> {
    return rehearse(this.#parts, target, terms)
  }

  /** Discards the next event of a queue. No processor runs. */
  discardNext(target: QueueHead, caller: Caller): Promise<StoredEvent | Obstacle> {
    const parts = this.#parts
    return this.#inTurn(target.service, () =>
      inOffice(parts.db, parts.clock, 'kafka.discard', async (work) => {
        const event = await locate(work.tx, target, work.now)
        if ('letterId' in event) await discardEvent(parts, work, event, 'operator', caller)
        return event
      }),
    )
  }

  /** Discards an event by its id, wherever it stands, unless there is none, or it is resolved already. */
  async discard(dlqId: string, caller: Caller): Promise<StoredEvent | Obstacle> {
    if (!isUuid(dlqId)) return EMPTY
    const id = dlqId.toLowerCase()
    return this.#counted(() => this.#untilFree(this.#deadline(), () => this.#tryDiscard(id, caller)))
  }

  /** Takes only its own letter: what else is in flight of the service does not matter. */
  #tryDiscard(dlqId: string, caller: Caller): Promise<StoredEvent | Obstacle | Again> {
    const parts = this.#parts
    return inOffice(parts.db, parts.clock, 'kafka.discard', async (work) => {
      const { tx, now } = work
      const named = await eventNamed(tx, dlqId)
      const event = named === null ? null : await lockEvent(tx, named.letterId)
      // An id that another record has taken over is spent.
      if (event === null || event.dlqId !== dlqId) return EMPTY
      if (isOpen(event)) {
        await discardEvent(parts, work, event, 'operator', caller)
        return event
      }
      const busy = await inTheWay(tx, event.service, now)
      return busy?.by.letterId === event.letterId ? busy : EMPTY
    })
  }

  /** Acts when all earlier calls of this server on the service have ended. */
  #inTurn<T extends object>(service: string, act: () => Promise<T | Again>): Promise<T | Obstacle> {
    return this.#counted(async () => {
      const deadline = this.#deadline()
      let isMyTurn = false
      try {
        return await this.#queues.inTurn(service, deadline, () => {
          isMyTurn = true
          return this.#untilFree(deadline, act)
        })
      } catch (error) {
        if (isMyTurn || !deadline.aborted) throw error
        const { db } = this.#parts
        return busy(await db.session('kafka.inFlight', (session) => inFlightOf(session, service)), service)
      }
    })
  }

  /** Makes attempts until nobody else's event is in the way any more, or until the deadline. */
  async #untilFree<T extends object>(
    deadline: AbortSignal,
    act: () => Promise<T | Again>,
  ): Promise<T | Obstacle> {
    for (;;) {
      const done = await act()
      if (!('again' in done)) return done
      if (done.again === 'lapsed') await letLapse(this.#parts, done.by)
      else if (deadline.aborted) return busy(done.by)
      else if (done.again === 'held') await sleep(backoffDelayMs(1, PAUSE), deadline)
    }
  }

  /** Over after the time that calls wait, or when the server stops. */
  #deadline(): AbortSignal {
    return AbortSignal.any([AbortSignal.timeout(this.#parts.settings.busyWaitMs), this.#stopped.signal])
  }

  /** Calls that `stop` waits for. */
  async #counted<T>(act: () => Promise<T>): Promise<T> {
    const call = act()
    this.#calls.add(call)
    try {
      return await call
    } finally {
      this.#calls.delete(call)
    }
  }
}

const EMPTY: Obstacle = { why: 'empty' }
/** Before another attempt. Not always the same time: others wait too. */
const PAUSE: BackoffPolicy = { baseMs: 100, factor: 1, maxMs: 100, jitter: 0.75 }

const busy = (by: Pick<InFlight, 'service' | 'dlqId'> | null, service = ''): Obstacle => ({
  why: 'busy',
  service: by?.service ?? service,
  dlqId: by?.dlqId ?? null,
})

/** Lets go of one event whose claim is over, unless it is under another by now, or was prolonged. */
function letLapse(parts: ReturnParts, { letterId, claim, leaseUntil }: InFlight): Promise<void> {
  return inOffice(parts.db, parts.clock, 'kafka.recover', async (work) => {
    const held = await lockClaim(work.tx, letterId)
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

/** Looks every few seconds for events that somebody held and let go of without a word. `live` are the claims that this process has. */
function recovery(parts: ReturnParts, live: ReadonlySet<string>): Rounds {
  const { db, clock, log, instance } = parts
  // What this server held before it ended is let go in the first round that succeeds.
  let isFirst = true
  return new Rounds({
    ...{ name: 'kafka.recovery', clock, log, everyUs: EVERY_US, isFirstLater: true },
    act: async () => {
      const held = await db.session('kafka.inFlight', allInFlight)
      const now = clock.now()
      for (const each of held) {
        // A file has one server at a time: on SQLite whoever held something is gone.
        const isOfBefore = db.dialect === 'sqlite' || isClaimOf(each.claimedBy, instance)
        const isAbandoned = isFirst && isOfBefore && !live.has(each.claim)
        if (isAbandoned || isOver(each, now)) await letLapse(parts, each)
      }
      isFirst = false
    },
    trouble: 'events that nobody holds any more could not be let go; it is tried again',
  })
}
