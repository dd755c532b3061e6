/**
 * How dead events leave. Calls on one service come one after the other: within this server in the order in which they were made,
 * and among servers as the store has it, where one event of a service is in flight at a time. Whoever gets no turn in time is told.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { inOffice } from '../../letters/work.ts'
import type { Caller, DlqId, StoredEvent } from '../event.ts'
import { isUuid } from '../names.ts'
import type { Resolution, ResolveRequest, ReturnWay } from '../ports.ts'
import { eventNamed } from '../queue-reader.ts'
import { attempt, done, type Ended, stopped, type Tried } from './attempt.ts'
import { discardEvent } from './discard.ts'
import type { Errand, Goal, LetterGoal, QueueGoal } from './errand.ts'
import { type Obstacle, refusalOf } from './obstacle.ts'
import type { ReturnParts } from './parts.ts'
import { Clerk, letLapse } from './recover.ts'
import { rehearse } from './rehearse.ts'
import { flyingOf, isOpen, isOver, lockEvent, seek } from './seek.ts'
import { ServiceTurns } from './turns.ts'

export class ReturnPath implements ReturnWay {
  readonly #parts: ReturnParts
  readonly #turns = new ServiceTurns()
  /** The tokens of the claims that this process has. */
  readonly #live = new Set<string>()
  readonly #calls = new Set<Promise<unknown>>()
  readonly #stopped = new AbortController()
  readonly #clerk: Clerk

  constructor(parts: ReturnParts) {
    this.#parts = parts
    this.#clerk = new Clerk(parts, this.#live)
  }

  /** Recovers what this server held when it ended, and from now on what others leave. */
  start(): Promise<void> {
    return this.#clerk.start()
  }

  /** Ends when no call is under way any more; those that wait for their turn are refused. */
  async stop(): Promise<void> {
    this.#stopped.abort(new Error('the server stops'))
    await Promise.all([this.#clerk.stop(), Promise.allSettled(this.#calls)])
  }

  async process(request: ResolveRequest): Promise<Resolution> {
    const goal = goalOf(request)
    return resolutionOf(goal, await this.#resolve(goal, this.#errandOf(request)))
  }

  async dryRun(request: ResolveRequest): Promise<Resolution> {
    const goal = goalOf(request)
    return resolutionOf(goal, await rehearse(this.#parts, goal, this.#errandOf(request)))
  }

  async discardNext({
    service,
    dlqId,
    caller,
  }: Pick<ResolveRequest, 'service' | 'dlqId' | 'caller'>): Promise<StoredEvent> {
    const goal = goalOf({ service, topic: null, dlqId })
    const result = await this.#inTurn(service, (patience) =>
      this.#patiently(patience, () => this.#tryDiscardNext(goal, caller)),
    )
    if ('why' in result) throw refusalOf(result, goal)
    return result
  }

  async discard(dlqId: string, caller: Caller): Promise<boolean> {
    if (!isUuid(dlqId)) return false
    const id = dlqId.toLowerCase()
    const result = await this.#counted(() =>
      this.#patiently(this.#patience(), () => this.#tryDiscard(id, caller)),
    )
    if (typeof result === 'boolean') return result
    throw refusalOf(result, goalOf({ service: '', topic: null, dlqId }))
  }

  /** Sends the event of one letter back, wherever it stands. */
  processLetter(goal: LetterGoal, errand: Errand): Promise<Ended> {
    return this.#resolve(goal, errand)
  }

  /** How that would end. Writes nothing. */
  rehearseLetter(goal: LetterGoal, errand: Errand): Promise<Ended> {
    return rehearse(this.#parts, goal, errand)
  }

  #errandOf({ caller, override, mintCorrelationId, resend }: ResolveRequest): Errand {
    return {
      caller,
      override,
      edit: null,
      mintCorrelationId,
      resend: resend || this.#parts.settings.onUncertain === 'resend',
      mayDiscard: true,
      notes: null,
    }
  }

  async #resolve(goal: Goal, errand: Errand): Promise<Ended> {
    const ended = await this.#inTurn(goal.service, (patience) =>
      this.#patiently(patience, () => attempt(this.#parts, this.#live, goal, errand)),
    )
    return 'why' in ended ? stopped(ended) : ended
  }

  #tryDiscardNext(goal: QueueGoal, caller: Caller): Promise<Tried<StoredEvent | Obstacle>> {
    const parts = this.#parts
    return inOffice(
      parts.db,
      parts.clock,
      'kafka.discard',
      async (work): Promise<Tried<StoredEvent | Obstacle>> => {
        const sought = await seek(work.tx, goal, work.now)
        switch (sought.found) {
          case 'none':
            return done({ why: 'empty' })
          case 'another':
            return done({ why: 'not_next', expected: sought.head })
          case 'held':
            return { outcome: 'held', by: sought.by }
          case 'lapsed':
            return { outcome: 'lapsed', lapse: sought.lapse }
          case 'free': {
            const { event } = sought
            await discardEvent(parts, work, event, { by: 'operator', caller, reason: null })
            return done(event)
          }
        }
      },
    )
  }

  /** Takes only its own letter: what else is in flight of the service does not matter. */
  #tryDiscard(dlqId: string, caller: Caller): Promise<Tried<boolean>> {
    const parts = this.#parts
    return inOffice(parts.db, parts.clock, 'kafka.discard', async (work) => {
      const { tx, now } = work
      const named = await eventNamed(tx, dlqId)
      const event = named === null ? null : await lockEvent(tx, named.letterId)
      // An id that another record has taken over is spent.
      if (event === null || event.dlqId !== dlqId) return done(false)
      if (isOpen(event)) {
        await discardEvent(parts, work, event, { by: 'operator', caller, reason: null })
        return done(true)
      }
      const flying = await flyingOf(tx, event.service)
      if (flying?.letterId !== event.letterId) return done(false)
      return isOver(flying, now) ? { outcome: 'lapsed', lapse: flying } : { outcome: 'held', by: event }
    })
  }

  /** Tries until somebody else's event is out of the way, or until the patience is over. */
  async #patiently<T>(patience: AbortSignal, attempt: () => Promise<Tried<T>>): Promise<T | Obstacle> {
    for (;;) {
      const tried = await attempt()
      switch (tried.outcome) {
        case 'done':
          return tried.result
        case 'lapsed':
          await letLapse(this.#parts, tried.lapse)
          break
        case 'held':
          if (patience.aborted) return busy(tried.by.service, tried.by.dlqId)
          await rest(patience)
          break
        case 'lost':
          if (patience.aborted) return busy(tried.from.service, tried.from.dlqId)
      }
    }
  }

  /** Acts when all earlier calls of this server on the service have ended. */
  #inTurn<T>(service: string, act: (patience: AbortSignal) => Promise<T>): Promise<T | Obstacle> {
    return this.#counted(async () => {
      const patience = this.#patience()
      let isMyTurn = false
      try {
        return await this.#turns.inTurn(service, patience, () => {
          isMyTurn = true
          return act(patience)
        })
      } catch (error) {
        if (isMyTurn || !patience.aborted) throw error
        const flying = await this.#parts.db.session('kafka.inFlight', (session) => flyingOf(session, service))
        return busy(service, flying?.dlqId ?? null)
      }
    })
  }

  #patience(): AbortSignal {
    return patienceOf(this.#parts.settings.busyWaitMs, this.#stopped.signal)
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

const SHORTEST_MS = 25
const LONGEST_MS = 100

/** Over after so many milliseconds, or when the server stops. */
const patienceOf = (waitMs: number, stopped: AbortSignal): AbortSignal =>
  AbortSignal.any([AbortSignal.timeout(waitMs), stopped])

/** Rests before another try; at most until the patience is over. Not always for the same time: others wait too. */
async function rest(patience: AbortSignal): Promise<void> {
  const ms = SHORTEST_MS + Math.random() * (LONGEST_MS - SHORTEST_MS)
  await pause(ms, undefined, { signal: patience }).catch(() => {})
}

const busy = (service: string, dlqId: DlqId | null): Obstacle => ({ why: 'busy', service, dlqId })

const goalOf = ({
  service,
  topic,
  dlqId,
}: Pick<ResolveRequest, 'service' | 'topic' | 'dlqId'>): QueueGoal => ({
  by: 'queue',
  service,
  topic,
  dlqId: dlqId?.toLowerCase() ?? null,
})

function resolutionOf(goal: QueueGoal, ended: Ended): Resolution {
  if (ended.outcome === 'stopped') throw refusalOf(ended.obstacle, goal)
  return ended
}
