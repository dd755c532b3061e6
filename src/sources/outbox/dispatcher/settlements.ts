/**
 * Writes results of claims, many at a time, and then releases lines that have moved. A line that could not be looked at
 * is looked at before the next claim.
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
  /** Messages that had waited in their line were released. */
  readonly #onReleased: () => void
  /** Ids of held messages, by line. */
  readonly #held = new Map<string, Set<string>>()
  /** Lines whose first messages may have to be released. */
  readonly #moved = new Map<string, Line>()
  readonly #transferred = new WeakSet<Held<Delivery>>()

  constructor(context: DispatcherContext, onReleased: () => void) {
    this.#context = context
    this.#onReleased = onReleased
  }

  hold(message: ClaimedMessage): Delivery {
    const stands = lineOf(message)
    if (stands === null) return { message, line: null }
    const line = JSON.stringify([stands.tenantId, stands.orderingKey])
    const ids = this.#held.get(line)
    if (ids === undefined) this.#held.set(line, new Set([message.id]))
    else ids.add(message.id)
    return { message, line }
  }

  /** Settled or left. True: it was the last of its line. */
  drop({ message, line }: Delivery): boolean {
    if (line === null) return false
    const ids = this.#held.get(line)
    ids?.delete(message.id)
    if (ids !== undefined && ids.size > 0) return false
    this.#held.delete(line)
    return true
  }

  /** Looks at these lines with the next settlement. */
  look(lines: readonly Line[]): void {
    for (const line of lines) this.#moved.set(JSON.stringify(line), line)
  }

  async releaseMoved(): Promise<void> {
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
    await this.releaseMoved()
  }

  async settle(results: readonly Result[]): Promise<void> {
    const { transport, log, name } = this.#context
    const isTransfer = results[0]?.result.kind === 'transfer'
    await this.#write(isTransfer && isLocal(transport) ? await this.#transfer(transport, results) : results)
    try {
      await this.releaseMoved()
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
    const { logEvent, onLetterDue } = this.#context
    for (const { held, result } of results) {
      const { job } = held
      const line = lineOf(job.message)
      // In any case: another dispatcher may have waited for this claim to end.
      if (this.drop(job) && line !== null) this.look([line])
      if (written.has(job.message.id)) this.#log(job.message, result)
      else logEvent('SKIP_PROCESSED', { id: job.message.id })
    }
    if (letterDue) onLetterDue?.()
  }

  #log({ id, key, retryCount, alreadyProcessed }: ClaimedMessage, outcome: Outcome): void {
    const { logEvent, settings } = this.#context
    if (outcome.kind === 'processed' && !alreadyProcessed) logEvent('DISPATCH_SUCCESS', { id, key })
    if (outcome.kind !== 'failed' && outcome.kind !== 'dead') return
    const dead = outcome.kind === 'dead'
    // The next retry; of a dead message the last.
    const retry = dead ? retryCount : retryCount + 1
    logEvent('DISPATCH_FAIL', { id, key, retry, max: settings.maxRetries }, { error: outcome.error, dead })
  }

  /** Puts messages where they belong, one by one when that fails for all together. Gives the results of those that failed. */
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

  /** In one transaction with their settlement; gives what was thrown, or null. */
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
      if (thrown instanceof StoreUnavailable) throw thrown
      if (batch.length === 1) meter.failed((performance.now() - startedMs) / 1_000)
      return { thrown }
    }
  }
}
