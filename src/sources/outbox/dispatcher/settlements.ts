/**
 * Settlements: what came of the claims of a dispatcher is written down, many at a time, and then the lines that have moved
 * are looked at. A line that could not be looked at is, before anything else is claimed.
 */
import type { Held } from '../../../core/work/held.ts'
import type { Settlement } from '../../../core/work/work-table.ts'
import { StoreUnavailable } from '../../../store/database.ts'
import { type Line, lineOf } from '../sql/line.ts'
import type { Settled } from '../sql/settle.ts'
import type { ClaimedMessage } from '../table/message.ts'
import { ClaimLost, isLocal, type LocalTransport } from '../transports/transport.ts'
import type { DispatcherContext } from './dispatcher.ts'
import { type Delivery, type Outcome, outcomeOf, PARKED, PROCESSED } from './outcome.ts'

type Result = Settlement<Delivery, Outcome>

/** Lines looked at in one transaction at most. */
const MOST_LINES = 1_000

export class Settlements {
  readonly #context: DispatcherContext
  /** Told when messages were let go that had waited in their line. */
  readonly #onReleased: () => void
  /** Ids of what is held, by line. */
  readonly #held = new Map<string, Set<string>>()
  /** Something has happened in them: their first messages may have to be let go. */
  readonly #moved = new Map<string, Line>()
  /** Transferred by a call that failed later on. */
  readonly #transferred = new WeakSet<Held<Delivery>>()

  constructor(context: DispatcherContext, onReleased: () => void) {
    this.#context = context
    this.#onReleased = onReleased
  }

  /** A message was claimed. */
  hold(message: ClaimedMessage): Delivery {
    const stands = lineOf(message)
    if (stands === null) return { message, line: null }
    const line = JSON.stringify([stands.tenantId, stands.orderingKey])
    const ids = this.#held.get(line)
    if (ids === undefined) this.#held.set(line, new Set([message.id]))
    else ids.add(message.id)
    return { message, line }
  }

  /** It is settled, or left. True when it was the last of its line. */
  drop({ message, line }: Delivery): boolean {
    if (line === null) return false
    const ids = this.#held.get(line)
    ids?.delete(message.id)
    if (ids !== undefined && ids.size > 0) return false
    this.#held.delete(line)
    return true
  }

  /** Looks soon whether the first messages of these lines can be let go. */
  look(lines: readonly Line[]): void {
    for (const line of lines) this.#moved.set(JSON.stringify(line), line)
  }

  /** Lets go of the first messages of lines that have moved. */
  async letGo(): Promise<void> {
    if (this.#moved.size === 0) return
    const { db, settings } = this.#context
    const table = await this.#context.table()
    const looked = [...this.#moved].slice(0, MOST_LINES)
    for (const [key] of looked) this.#moved.delete(key)
    try {
      const lines = looked.map(([, line]) => line)
      if ((await table.lines.release(db, lines, settings.onDead)) > 0) this.#onReleased()
    } catch (error) {
      for (const [key, line] of looked) this.#moved.set(key, line)
      throw error
    }
    await this.letGo()
  }

  async settle(results: readonly Result[]): Promise<void> {
    const { transport, log, name } = this.#context
    const isTransfer = results[0]?.result.kind === 'transfer'
    await this.#write(isTransfer && isLocal(transport) ? await this.#transfer(transport, results) : results)
    try {
      await this.letGo()
    } catch (error) {
      log.error({ err: error, outbox: name }, 'outbox messages could not be settled')
      this.#onReleased()
    }
  }

  async #write(results: readonly Result[]): Promise<void> {
    const { db, clock, claimedBy } = this.#context
    const settlements = results.flatMap(({ held, result }) =>
      result.kind === 'transfer' ? [] : { ...result, id: held.job.message.id },
    )
    if (settlements.length === 0) return
    const table = await this.#context.table()
    const isOne = new Set(settlements.map(({ kind }) => kind === 'processed')).size === 1
    const write = isOne ? db.statement.bind(db) : db.transaction.bind(db)
    this.#written(
      results,
      await write('outbox.settle', (tx) => table.settle(tx, settlements, claimedBy, clock.now())),
    )
  }

  #written(results: readonly Result[], { written, letterDue }: Settled): void {
    const { say, onLetterDue } = this.#context
    for (const { held, result } of results) {
      const { job } = held
      const line = lineOf(job.message)
      // Whatever came of it: another dispatcher may have waited for this claim to end.
      if (this.drop(job) && line !== null) this.look([line])
      if (written.has(job.message.id)) this.#log(job.message, result)
      else say('SKIP_PROCESSED', { id: job.message.id })
    }
    if (letterDue) onLetterDue?.()
  }

  #log({ id, key, retryCount, alreadyProcessed }: ClaimedMessage, outcome: Outcome): void {
    const { say, settings } = this.#context
    if (outcome.kind === 'processed' && !alreadyProcessed) say('DISPATCH_SUCCESS', { id, key })
    if (outcome.kind !== 'failed' && outcome.kind !== 'dead') return
    const dead = outcome.kind === 'dead'
    // The repetition that follows; of a dead message the last one that there was.
    const retry = dead ? retryCount : retryCount + 1
    say('DISPATCH_FAIL', { id, key, retry, max: settings.maxRetries }, { error: outcome.error, dead })
  }

  /** Puts messages where they belong; one by one when that fails for all of them together. Gives what came of those that were not put. */
  async #transfer(transport: LocalTransport, results: readonly Result[]): Promise<readonly Result[]> {
    const { settings, clock } = this.#context
    const batch = results.map(({ held }) => held).filter((held) => !this.#transferred.has(held))
    if (batch.length === 0 || (await this.#put(transport, batch)) === null) return []
    const left: Result[] = []
    const stuck = new Map<string, Outcome>()
    for (const held of batch) {
      const { line, message } = held.job
      const before = line === null ? undefined : stuck.get(line)
      const failure = before === undefined ? await this.#put(transport, [held]) : null
      if (before === undefined && failure === null) continue
      const result = before ?? outcomeOf(failure?.thrown, message, settings, clock.now())
      left.push({ held, result })
      if (line !== null) stuck.set(line, result.kind === 'released' ? result : PARKED)
    }
    return left
  }

  /** Puts messages where they belong and settles them, in one transaction; gives what was thrown, or null. */
  async #put(
    transport: LocalTransport,
    batch: readonly Held<Delivery>[],
  ): Promise<{ readonly thrown: unknown } | null> {
    const { meter, clock, claimedBy } = this.#context
    const startedMs = performance.now()
    const messages = batch.map(({ job }) => job.message)
    const settlements = messages.map(({ id }) => ({ ...PROCESSED, id }))
    try {
      const table = await this.#context.table()
      const settled = await transport.transfer(messages, async (tx) => {
        const result = await table.settle(tx, settlements, claimedBy, clock.now())
        if (result.written.size < batch.length) throw new ClaimLost('another dispatcher has the message')
        return result
      })
      const eachSeconds = (performance.now() - startedMs) / 1_000 / batch.length
      for (const held of batch) {
        meter.dispatched(eachSeconds)
        this.#transferred.add(held)
      }
      this.#written(
        batch.map((held) => ({ held, result: PROCESSED })),
        settled,
      )
      return null
    } catch (thrown) {
      // No fault of the messages.
      if (thrown instanceof StoreUnavailable) throw thrown
      if (batch.length === 1) meter.failed((performance.now() - startedMs) / 1_000)
      return { thrown }
    }
  }
}
