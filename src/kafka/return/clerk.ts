/** Looks every few seconds for events that somebody held and let go of without a word. */
import { type Alarm, later } from '../../core/clock.ts'
import type { ReturnParts } from './parts.ts'
import { recover } from './recover.ts'

const EVERY_US = 5_000_000n

export class Clerk {
  readonly #parts: ReturnParts
  readonly #live: ReadonlySet<string>
  #alarm: Alarm | undefined
  #round: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(parts: ReturnParts, live: ReadonlySet<string>) {
    this.#parts = parts
    this.#live = live
  }

  /** A first round now, for what this server held before; then one every few seconds. */
  async start(): Promise<void> {
    await this.#look(true)
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
    let isDone = false
    try {
      await recover(this.#parts, { isStart, live: this.#live })
      isDone = true
    } catch (error) {
      log.warn({ err: error }, 'events that nobody holds any more could not be let go; it is tried again')
    }
    if (this.#isStopped) return
    // A start that failed is made up for.
    this.#alarm = clock.alarm(later(clock.now(), EVERY_US), () => void this.#look(isStart && !isDone))
  }
}
