/** What a dispatcher does beside delivering: purging what is past its time, and looking for lines that stand still. */
import { setTimeout as pause } from 'node:timers/promises'
import { type Alarm, type Instant, instant, later } from '../../core/clock.ts'
import type { DispatcherParts } from './dispatcher.ts'
import type { Line } from './sql/line.ts'
import type { Purged } from './sql/purge.ts'

const ROUND_US = 60_000_000n
const DAY_US = 86_400_000_000
/** Lines per look, and a breath between looks: a million lines must not keep the store busy. */
const LINES = 500
const BREATH_MS = 50

export class Maintenance {
  readonly #parts: DispatcherParts
  /** Told when rows may have been let go. */
  readonly #onReleased: () => void
  readonly #stopped = new AbortController()
  #alarm: Alarm | undefined
  #round: Promise<void> = Promise.resolve()
  #lookedAt: Instant | null = null

  constructor(parts: DispatcherParts, onReleased: () => void) {
    this.#parts = parts
    this.#onReleased = onReleased
  }

  /** One round now, and one every minute. */
  start(): void {
    if (this.#alarm !== undefined || this.#stopped.signal.aborted) return
    const next = later(this.#parts.clock.now(), ROUND_US)
    this.#alarm = this.#parts.clock.alarm(next, () => {
      this.#alarm = undefined
      this.start()
    })
    this.#round = this.#round.then(() => this.#once())
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#alarm?.cancel()
    await this.#round
  }

  /** Removes processed rows whose time is over. Their keys are recorded first; the rows go in a round a minute later. */
  async purge(): Promise<Purged> {
    const { db, settings, clock } = this.#parts
    const { processed, keys } = settings.retention
    if (processed === 0) return { rows: 0, keys: 0 }
    const now = clock.now()
    const daysAgo = (days: number) => instant(now - BigInt(Math.round(days * DAY_US)))
    const table = await this.#parts.table()
    return table.purge(
      db,
      {
        now,
        processedBefore: daysAgo(processed),
        recordedBefore: keys > processed ? daysAgo(keys - processed) : null,
      },
      this.#stopped.signal,
    )
  }

  /** For who only drains and has no rounds: false when lines were looked at in the last minute. */
  async lookAtLines(): Promise<boolean> {
    const now = this.#parts.clock.now()
    if (this.#lookedAt !== null && now < later(this.#lookedAt, ROUND_US)) return false
    await this.#trying(() => this.#sweepLines())
    return true
  }

  #once(): Promise<void> {
    return this.#trying(async () => {
      await this.#sweepLines()
      const purged = await this.purge()
      const { log, name } = this.#parts
      if (purged.rows + purged.keys > 0) log.info({ outbox: name, ...purged }, 'outbox purged')
    })
  }

  async #trying(work: () => Promise<void>): Promise<void> {
    const { log, name } = this.#parts
    try {
      await work()
    } catch (error) {
      log.warn({ err: error, outbox: name }, 'upkeep of the outbox failed; it is tried again in a minute')
    }
  }

  /** Lets lines go on whose first message was removed, or settled by a dispatcher that ended right after. */
  async #sweepLines(): Promise<void> {
    const { db, settings, clock } = this.#parts
    this.#lookedAt = clock.now()
    const table = await this.#parts.table()
    let after: Line | null = null
    do {
      after = await table.lines.sweep(db, after, LINES, settings.onDead)
      this.#onReleased()
      if (after !== null) await pause(BREATH_MS, undefined, { ref: false })
    } while (after !== null && !this.#stopped.signal.aborted)
  }
}
