/**
 * Settling: what came of the claims of a dispatcher is written down, many at a time, and then the lines that have moved
 * are looked at. Neither is forgotten while the store is away: it is tried again until it is done.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { backoffDelayMs } from '../../../core/backoff.ts'
import { StoreUnavailable } from '../../../store/database.ts'
import { type Line, lineOf } from '../sql/line.ts'
import type { Settled } from '../sql/settle.ts'
import type { Settlement } from '../table/message.ts'
import type { DispatcherContext } from './dispatcher.ts'
import type { Held } from './held.ts'

/** After an outage: soon, then ever later. */
export const OUTAGE = { baseMs: 100, factor: 2, maxMs: 5_000, jitter: 0.5 }

/** A settlement of a message that is at hand. */
export type Outcome = WithoutId<Settlement>
type WithoutId<Each> = Each extends unknown ? Omit<Each, 'id'> : never

/** It was not delivered, and anybody may have it. */
export const GIVEN_BACK = { kind: 'released', parked: false } as const satisfies Outcome
/** It was not delivered, because of one before it in its line. */
export const PARKED = { kind: 'released', parked: true } as const satisfies Outcome

/** Settled in one transaction at most. */
const MAX_SETTLED = 1_000
/** A row that the store refuses so often is left to its claim, which lapses; the others must not wait for it. */
const MOST_REFUSALS = 10
/** When the dispatcher is stopped and the store away, claims lapse and others deliver again: at least once. */
const TRIES_WHEN_STOPPING = 4

export class Settling {
  readonly #context: DispatcherContext
  /** Told when messages were let go that had waited in their line. */
  readonly #onReleased: () => void
  readonly #outcomes: Settlement[] = []
  /** Something has happened in them: their first messages may have to be let go. */
  readonly #moved = new Map<string, Line>()
  /** So many are written one by one, to find the one that is refused. */
  #singly = 0
  readonly #refusals = new Map<string, number>()
  #writing: Promise<void> | undefined
  #stopping = false
  #triesLeft = TRIES_WHEN_STOPPING

  constructor(context: DispatcherContext, onReleased: () => void) {
    this.#context = context
    this.#onReleased = onReleased
  }

  /** Everything is written. */
  get isDone(): boolean {
    return this.#writing === undefined
  }

  /** Writes down what came of a message, soon. */
  settle(held: Held, outcome: Outcome): void {
    held.isOver = true
    this.#outcomes.push({ ...outcome, id: held.message.id })
    this.#begin()
  }

  /** Looks soon whether the first messages of these lines can be let go. */
  look(lines: readonly Line[]): void {
    for (const line of lines) this.#moved.set(JSON.stringify(line), line)
    if (lines.length > 0) this.#begin()
  }

  /** What was written is held no longer, and logged. */
  written(settlements: readonly Settlement[], { written, letterDue }: Settled): void {
    const { held, changes, say, onLetterDue } = this.#context
    for (const settlement of settlements) {
      const one = held.get(settlement.id)
      if (one === undefined) continue
      const wasLast = held.drop(one)
      this.#refusals.delete(settlement.id)
      if (!written.has(settlement.id)) say('SKIP_PROCESSED', { id: settlement.id })
      else this.#log(one, settlement)
      const line = lineOf(one.message)
      // Whatever came of it: another dispatcher may have waited for this claim to end.
      if (wasLast && line !== null) this.look([line])
      // Claimed again while this was being written, perhaps after it: nobody else would deliver it.
      if (one.isClaimedAgain) this.settle(held.keep(one.message, one.claimedUntil), GIVEN_BACK)
    }
    changes.notify()
    if (letterDue) onLetterDue?.()
  }

  /** Resolves when everything is written, or the store is away. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#context.changes.notify()
    await this.#writing
  }

  #begin(): void {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined
      this.#context.changes.notify()
    })
  }

  async #writeAll(): Promise<void> {
    const { log, name } = this.#context
    for (let failures = 0; this.#outcomes.length + this.#moved.size > 0; ) {
      // What ends in the same turn of the event loop is settled together: over HTTP ten times fewer commits than without.
      await nextTurn()
      try {
        await this.#writeSome()
        await this.#letGo()
        failures = 0
      } catch (error) {
        failures += 1
        log.error({ err: error, outbox: name }, 'outbox messages could not be settled')
        if (this.#triesLeft === 0) return
        await this.#pauseAfter(failures)
      }
    }
  }

  /** Ever longer; in the end some more times, soon. */
  async #pauseAfter(failures: number): Promise<void> {
    const { changes } = this.#context
    const isLast = this.#stopping
    if (isLast) this.#triesLeft -= 1
    await changes.within(backoffDelayMs(isLast ? 2 : failures, OUTAGE), () => this.#stopping && !isLast)
  }

  async #writeSome(): Promise<void> {
    const { db, clock, claimedBy } = this.#context
    const batch = this.#outcomes.splice(0, this.#singly > 0 ? 1 : MAX_SETTLED)
    if (batch.length === 0) return
    this.#singly = Math.max(0, this.#singly - 1)
    try {
      const table = await this.#context.table()
      const isOne = new Set(batch.map(({ kind }) => kind === 'processed')).size === 1
      const write = isOne ? db.statement.bind(db) : db.transaction.bind(db)
      this.written(
        batch,
        await write('outbox.settle', (tx) => table.settle(tx, batch, claimedBy, clock.now())),
      )
    } catch (error) {
      this.#failed(batch, error)
      throw error
    }
  }

  /** Keeps what could not be written. One row that is refused must not hold up all others. */
  #failed(batch: readonly Settlement[], error: unknown): void {
    const kept = batch.filter(({ id }) => this.#context.held.get(id) !== undefined)
    if (error instanceof StoreUnavailable) {
      this.#outcomes.unshift(...kept)
      return
    }
    if (kept.length > 1) this.#singly = this.#outcomes.length + kept.length
    for (const settlement of kept) {
      const refusals = (this.#refusals.get(settlement.id) ?? 0) + 1
      this.#refusals.set(settlement.id, refusals)
      if (refusals < MOST_REFUSALS) this.#outcomes.push(settlement)
      else this.#leave(settlement)
    }
  }

  #leave({ id }: Settlement): void {
    const { held, changes, log, name } = this.#context
    const one = held.get(id)
    if (one !== undefined) held.drop(one)
    this.#refusals.delete(id)
    log.error({ outbox: name, id }, 'an outbox message cannot be settled; its claim is left to lapse')
    changes.notify()
  }

  async #letGo(): Promise<void> {
    if (this.#moved.size === 0) return
    const { db, settings } = this.#context
    const table = await this.#context.table()
    const looked = [...this.#moved].slice(0, MAX_SETTLED)
    for (const [key] of looked) this.#moved.delete(key)
    try {
      const lines = looked.map(([, line]) => line)
      if ((await table.lines.release(db, lines, settings.onDead)) > 0) this.#onReleased()
    } catch (error) {
      for (const [key, line] of looked) this.#moved.set(key, line)
      throw error
    }
  }

  #log({ message }: Held, settlement: Settlement): void {
    const { say, settings } = this.#context
    const { id, key, retryCount } = message
    if (settlement.kind === 'processed' && !message.alreadyProcessed) say('DISPATCH_SUCCESS', { id, key })
    if (settlement.kind !== 'failed' && settlement.kind !== 'dead') return
    const dead = settlement.kind === 'dead'
    // The repetition that follows; of a dead message the last one that there was.
    const retry = dead ? retryCount : retryCount + 1
    say('DISPATCH_FAIL', { id, key, retry, max: settings.maxRetries }, { error: settlement.error, dead })
  }
}
