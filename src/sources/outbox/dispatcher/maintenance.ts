/** Purges what is past its time, and looks for lines that stand still. */
import { type Instant, instant, later } from '../../../core/clock.ts'
import { Rounds, type Service } from '../../../core/rounds.ts'
import { rest } from '../../../core/waiting.ts'
import type { Line } from '../sql/line.ts'
import type { Purged } from '../sql/purge.ts'
import type { DispatcherParts } from './dispatcher.ts'

const ROUND_US = 60_000_000n
const DAY_US = 86_400_000_000
/** Lines per look, and a pause between looks: a million lines must not keep the store busy. */
const LINES = 500
const BREATH_MS = 50

export class Maintenance implements Service {
  readonly name: string
  readonly #parts: DispatcherParts
  readonly #onReleased: () => void
  readonly #stopped = new AbortController()
  readonly #sweeps: Rounds
  readonly #purges: Rounds
  #lookedAt: Instant | null = null

  constructor(parts: DispatcherParts, onReleased: () => void) {
    this.#parts = parts
    this.#onReleased = onReleased
    const { name, clock, log } = parts
    this.name = `outbox.maintenance:${name}`
    const every = {
      ...{ clock, log, everyUs: ROUND_US, about: { outbox: name } },
      trouble: 'upkeep of the outbox failed; it is tried again in a minute',
    }
    this.#sweeps = new Rounds({
      ...{ ...every, name: `outbox.lines:${name}` },
      act: (signal) => this.#sweepLines(signal),
    })
    this.#purges = new Rounds({
      ...{ ...every, name: `outbox.purge:${name}` },
      act: () => this.#purgeAndLog(),
    })
  }

  get rounds(): readonly Rounds[] {
    return [this.#sweeps, this.#purges]
  }

  start(): void {
    for (const rounds of this.rounds) rounds.start()
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    await Promise.all(this.rounds.map((rounds) => rounds.stop()))
  }

  /** Keys are recorded first; rows go in a round a minute later. */
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

  /** For dispatchers that only drain. False: lines were looked at in the last minute. */
  async lookAtLines(): Promise<boolean> {
    const now = this.#parts.clock.now()
    if (this.#lookedAt !== null && now < later(this.#lookedAt, ROUND_US)) return false
    await this.#sweeps.now()
    return true
  }

  async #purgeAndLog(): Promise<void> {
    const purged = await this.purge()
    const { log, name } = this.#parts
    if (purged.rows + purged.keys > 0) log.info({ outbox: name, ...purged }, 'outbox purged')
  }

  /** Releases lines whose first message was removed, or settled by a dispatcher that ended right after. */
  async #sweepLines(signal: AbortSignal): Promise<void> {
    const { db, settings, clock } = this.#parts
    this.#lookedAt = clock.now()
    const table = await this.#parts.table()
    let after: Line | null = null
    do {
      after = await table.lines.sweep(db, after, LINES, settings.onDead)
      this.#onReleased()
    } while (after !== null && (await rest(BREATH_MS, signal)))
  }
}
