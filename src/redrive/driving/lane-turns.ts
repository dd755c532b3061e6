/** The lanes of a redrive under way, as this server knows them, and which of them is next: each gets its turn. */
import { type CountedLane, type LaneStep, remainingOf } from '../rows/lanes.ts'

export class LaneTurns {
  #lanes: readonly CountedLane[] = []
  /** Lanes in which nothing can be done before something was done in another. */
  readonly #waiting = new Set<number>()
  #next = 0
  /** How often something was done in any lane, now and when each lane's batch began. */
  #steps = 0
  readonly #stepsBefore = new Map<number, number>()

  /** The lanes as the store has them. */
  learn(lanes: readonly CountedLane[]): void {
    this.#lanes = lanes
    this.#waiting.clear()
  }

  /** Lanes that have letters left and do not wait, beginning with the one whose turn it is. */
  open(): readonly CountedLane[] {
    const next = this.#next % Math.max(1, this.#lanes.length)
    return [...this.#lanes.slice(next), ...this.#lanes.slice(0, next)].filter(
      (lane) => remainingOf(lane) > 0 && !this.#waiting.has(lane.lane),
    )
  }

  /** It is this lane's turn. */
  took({ lane }: CountedLane): void {
    this.#next = this.#lanes.findIndex((each) => each.lane === lane) + 1
    this.#stepsBefore.set(lane, this.#steps)
  }

  /**
   * What was done in a lane. One in which nothing was waits for the others, unless one of them went on meanwhile: the batch may
   * have looked before that was committed, and two lanes that wait for each other stand still until the next look at the store.
   */
  count({ lane }: CountedLane, { sent, skipped, failed }: Omit<LaneStep, 'to'>): void {
    if (sent + skipped + failed === 0) {
      if ((this.#stepsBefore.get(lane) ?? this.#steps) === this.#steps) this.#waiting.add(lane)
      return
    }
    this.#steps++
    this.#waiting.clear()
    this.#lanes = this.#lanes.map((each) =>
      each.lane === lane
        ? { ...each, sent: each.sent + sent, skipped: each.skipped + skipped, failed: each.failed + failed }
        : each,
    )
  }

  /** Letters that were sent. */
  get sent(): number {
    return this.#lanes.reduce((sum, { sent }) => sum + sent, 0)
  }

  /** Whether no letter is left. */
  get areDone(): boolean {
    return this.#lanes.every((lane) => remainingOf(lane) === 0)
  }
}
