/** What happens when: acts are played in the order of their instants, and may add later ones. */
import type { Instant } from '../core/clock.ts'

interface Entry {
  readonly at: Instant
  readonly act: () => Promise<void>
}

export class Timeline {
  readonly #entries: Entry[] = []

  add(at: Instant, act: () => Promise<void>): void {
    const place = this.#entries.findLastIndex((entry) => entry.at <= at)
    this.#entries.splice(place + 1, 0, { at, act })
  }

  /** Plays everything before `end`; `reach` is told each instant first. */
  async play(end: Instant, reach: (at: Instant) => Promise<void>): Promise<void> {
    for (let entry = this.#entries.shift(); entry !== undefined; entry = this.#entries.shift()) {
      if (entry.at >= end) return
      await reach(entry.at)
      await entry.act()
    }
  }
}
