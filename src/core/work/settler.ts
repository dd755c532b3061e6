/**
 * Writes results: those that gather during a call go with the next, group by group. None is forgotten while the table is away. A refused
 * result is tried alone, a few times while its claim lasts, and does not hold up others.
 */
import { backoffDelayMs } from '../backoff.ts'
import { type Alarm, after } from '../clock.ts'
import { pause } from '../waiting.ts'
import type { Held } from './held.ts'
import type { Settlement, WorkerOptions } from './work-table.ts'

/** After the worker stops; claims lapse, and at least once is promised. */
const LAST_TRIES = 4

interface Line<Job, Result> {
  readonly results: Settlement<Job, Result>[]
  isWriting: boolean
  /** So many from the front are written one by one, to find the refused one. */
  singly: number
}

export class Settler<Job, Result> {
  readonly #options: WorkerOptions<Job, Result>
  readonly #onSettled: (held: readonly Held<Job>[]) => void
  readonly #lines = new Map<string | number, Line<Job, Result>>()
  /** Refused, and tried again later. */
  readonly #later = new Map<Held<Job>, Alarm>()
  readonly #hurry = new AbortController()
  readonly #stopped = new AbortController()
  #unwritten = 0
  #triesLeft: number

  constructor(options: WorkerOptions<Job, Result>, onSettled: (held: readonly Held<Job>[]) => void) {
    this.#options = options
    this.#onSettled = onSettled
    this.#triesLeft = options.lastTries ?? LAST_TRIES
  }

  get unwritten(): number {
    return this.#unwritten
  }

  settle(settlement: Settlement<Job, Result>): void {
    settlement.held.isOver = true
    this.#unwritten += 1
    this.#add(settlement)
  }

  /** Outages are no longer waited out: a few more tries, soon. */
  hurry(): void {
    this.#hurry.abort()
  }

  /** Leaves what is not written. */
  stop(): void {
    this.#stopped.abort()
    for (const alarm of this.#later.values()) alarm.cancel()
  }

  #add(settlement: Settlement<Job, Result>): void {
    const { table } = this.#options
    const key = table.groupOf?.(settlement.held.job, settlement.result) ?? 0
    let line = this.#lines.get(key)
    if (line === undefined) {
      line = { results: [], isWriting: false, singly: 0 }
      this.#lines.set(key, line)
    }
    line.results.push(settlement)
    if (!line.isWriting) void this.#writeAll(line)
  }

  async #writeAll(line: Line<Job, Result>): Promise<void> {
    const { table, mostSettled } = this.#options
    line.isWriting = true
    for (let failures = 0; line.results.length > 0 && !this.#stopped.signal.aborted; ) {
      // Results of one event loop turn are written together: over HTTP ten times fewer commits.
      if (failures === 0) await endOfTurn()
      const [first] = line.results
      if (first === undefined) break
      const batch = line.results.splice(0, line.singly > 0 ? 1 : mostSettled(first.result))
      try {
        await table.settle(batch)
        line.singly = Math.max(0, line.singly - 1)
        failures = 0
        this.#end(batch)
      } catch (error) {
        const blamed = table.blame(
          error,
          batch.map(({ held }) => held),
          'settle',
        )
        if (blamed === 'away') await this.#waitOut(line, batch, error, ++failures)
        else this.#refused(line, batch, error, blamed)
      }
    }
    line.isWriting = false
  }

  #end(batch: readonly Settlement<Job, Result>[]): void {
    this.#unwritten -= batch.length
    this.#onSettled(batch.map(({ held }) => held))
  }

  async #waitOut(
    line: Line<Job, Result>,
    batch: readonly Settlement<Job, Result>[],
    error: unknown,
    failures: number,
  ): Promise<void> {
    const { clock, waitsBy = clock, outage, settlesInTime, onTrouble } = this.#options
    const isLast = this.#hurry.signal.aborted
    if (isLast) this.#triesLeft -= 1
    const now = clock.now()
    const isLate = ({ held }: Settlement<Job, Result>) =>
      this.#triesLeft <= 0 || (settlesInTime === true && now >= held.until)
    const late = batch.filter(isLate)
    const kept = batch.filter((settlement) => !isLate(settlement))
    line.results.unshift(...kept)
    if (late.length > 0) this.#leave('late', error, late)
    if (kept.length === 0) return
    onTrouble(
      'settle',
      error,
      kept.map(({ held }) => held),
    )
    const us = BigInt(backoffDelayMs(isLast ? 2 : failures, outage) * 1_000)
    await pause(waitsBy, us, isLast ? this.#stopped.signal : this.#hurry.signal)
  }

  #refused(
    line: Line<Job, Result>,
    batch: readonly Settlement<Job, Result>[],
    error: unknown,
    blamed: 'refused' | Held<Job>,
  ): void {
    const { clock, waitsBy = clock, outage, mostRefusals, onTrouble } = this.#options
    const refused = blamed === 'refused' ? batch : batch.filter(({ held }) => held === blamed)
    line.singly = Math.max(0, line.singly - 1)
    const [first] = refused
    if (refused.length !== 1 || first === undefined) {
      line.results.unshift(...batch)
      line.singly += batch.length
      return
    }
    line.results.unshift(...batch.filter((settlement) => settlement !== first))
    const { held } = first
    held.refusals += 1
    const isGivenUp = held.refusals >= mostRefusals || clock.now() >= held.until
    if (isGivenUp || this.#hurry.signal.aborted) {
      this.#leave('refused', error, refused)
      return
    }
    onTrouble('settle', error, [held])
    const alarm = after(waitsBy, BigInt(backoffDelayMs(held.refusals, outage) * 1_000), () => {
      this.#later.delete(held)
      this.#add(first)
    })
    this.#later.set(held, alarm)
  }

  #leave(why: 'refused' | 'late', error: unknown, batch: readonly Settlement<Job, Result>[]): void {
    this.#options.onTrouble(
      why,
      error,
      batch.map(({ held }) => held),
    )
    this.#end(batch)
  }
}

/** Browsers, in which consumers run too, have only timers. */
const endOfTurn = (): Promise<void> =>
  new Promise((resolve) => (typeof setImmediate === 'function' ? setImmediate(resolve) : setTimeout(resolve)))
