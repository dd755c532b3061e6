/**
 * How dead events leave: the only way for calls on queues, retries and redrives. Calls on one service follow each other, in the order of
 * their arrival on this server and one at a time among servers; whoever gets no turn in time is refused.
 *
 * After a crash, claims that nobody holds any more end: a claimed event is pending again, one that was being published is uncertain.
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

export class ReturnPath {
  readonly #parts: ReturnParts
  readonly #queues = new ServiceQueues()
  /** Tokens of this process's claims. */
  readonly #live = new Set<string>()
  readonly #calls = new Set<Promise<unknown>>()
  readonly #stopped = new AbortController()
  readonly #recovery: Rounds

  constructor(parts: ReturnParts) {
    this.#parts = parts
    this.#recovery = recovery(parts, this.#live)
  }

  async start(): Promise<void> {
    await this.#recovery.now()
    this.#recovery.start()
  }

  get rounds(): readonly Rounds[] {
    return [this.#recovery]
  }

  /** Waits for calls under way; those that wait for their turn are refused. */
  async stop(): Promise<void> {
    this.#stopped.abort(new Error('the server stops'))
    await Promise.all([this.#recovery.stop(), Promise.allSettled(this.#calls)])
  }

  send(target: Target, terms: Terms): Promise<Ended> {
    return this.#inTurn(target.service, () => attempt(this.#parts, this.#live, target, terms))
  }

  /** How `send` would end. Writes nothing. */
  rehearse(target: Target, terms: Terms): Promise<Ended> {
    return rehearse(this.#parts, target, terms)
  }

  /** No processor runs. */
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

  /** Discards an event wherever it stands, unless it is resolved. */
  async discard(dlqId: string, caller: Caller): Promise<StoredEvent | Obstacle> {
    if (!isUuid(dlqId)) return EMPTY
    const id = dlqId.toLowerCase()
    return this.#counted(() => this.#untilFree(this.#deadline(), () => this.#tryDiscard(id, caller)))
  }

  /** Locks its own letter alone: other events of the service do not matter. */
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

  /** Acts after all earlier calls of this server on the service. */
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

  /** Tries until nobody else's event is in the way, or until the deadline. */
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

  #deadline(): AbortSignal {
    return AbortSignal.any([AbortSignal.timeout(this.#parts.settings.busyWaitMs), this.#stopped.signal])
  }

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
/** Jitter: others wait too. */
const PAUSE: BackoffPolicy = { baseMs: 100, factor: 1, maxMs: 100, jitter: 0.75 }

const busy = (by: Pick<InFlight, 'service' | 'dlqId'> | null, service = ''): Obstacle => ({
  why: 'busy',
  service: by?.service ?? service,
  dlqId: by?.dlqId ?? null,
})

/** Ends the claim, unless it was renewed or replaced meanwhile. */
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

/** Ends claims that nobody holds any more. `live` are those of this process. */
function recovery(parts: ReturnParts, live: ReadonlySet<string>): Rounds {
  const { db, clock, log, instance } = parts
  // The first round that succeeds ends this server's claims of before.
  let isFirst = true
  return new Rounds({
    ...{ name: 'kafka.recovery', clock, log, everyUs: EVERY_US, isFirstLater: true },
    act: async () => {
      const held = await db.session('kafka.inFlight', allInFlight)
      const now = clock.now()
      for (const each of held) {
        // A file has one server at a time: on SQLite earlier holders are gone.
        const isOfBefore = db.dialect === 'sqlite' || isClaimOf(each.claimedBy, instance)
        const isAbandoned = isFirst && isOfBefore && !live.has(each.claim)
        if (isAbandoned || isOver(each, now)) await letLapse(parts, each)
      }
      isFirst = false
    },
    trouble: 'events that nobody holds any more could not be let go; it is tried again',
  })
}
