/**
 * The order of deaths in cycles that overlap. Letters lie in a dead queue, and those of one instance are captured, in the order in which
 * their cycles were formed, whichever of these is faster. So each cycle waits for the ones before it to have been given their serials and
 * times, which is long before these commit; and what was given stays given when a cycle is run again.
 *
 * Nothing is held before a turn is taken, no lock and no connection: a cycle that waited with either could be what the one before waits for.
 */
import type { Instant } from '../../core/clock.ts'
import type { DeadQueues } from '../cycles/loops.ts'
import type { QueueRecord } from '../records.ts'

/** What an item that dies is given. */
export interface DeathPlace {
  /** Its serial in the dead queue; null where there is none. */
  readonly serial: number | null
  /** When it was captured; null: when it was filed, because it is of no instance. */
  readonly capturedAt: Instant | null
}

export class DeathTurn {
  /** Resolves when all before it had theirs. Waited for without a connection. */
  readonly before: Promise<void>
  readonly #places = new Map<string, DeathPlace>()
  /** Lets the next cycle have its turn. */
  readonly end: () => void
  constructor(before: Promise<void>, end: () => void) {
    this.before = before
    this.end = end
  }

  /** The places of all deaths of the cycle, in their order; `give` makes those that are missing. With it the turn is over. */
  async placesOf<D extends { readonly itemId: string }>(
    deaths: readonly D[],
    hasDeadQueue: boolean,
    give: (deaths: readonly D[]) => Promise<readonly DeathPlace[]>,
  ): Promise<readonly (DeathPlace | undefined)[]> {
    const missing = deaths.filter(({ itemId }) => {
      const place = this.#places.get(itemId)
      return place === undefined || (hasDeadQueue && place.serial === null)
    })
    const given = missing.length === 0 ? [] : await give(missing)
    for (const [i, place] of given.entries()) this.#places.set(missing[i]?.itemId ?? '', place)
    this.end()
    return deaths.map(({ itemId }) => this.#places.get(itemId))
  }
}

/** The turns of the cycles of a queue. */
export class DeathOrder {
  readonly #deadQueues: DeadQueues
  /** The dead queues that overlapping deaths come to: those that were configured since they overlap. */
  readonly overlapped = new Set<string>()
  #last: Promise<void> = Promise.resolve()

  constructor(deadQueues: DeadQueues) {
    this.#deadQueues = deadQueues
  }

  /** Letters that are settled in their queue are locked before their turn: those do not overlap. */
  mayOverlap({ holdsLetters, deadQueue }: QueueRecord): boolean {
    return !holdsLetters && (deadQueue === '' || !this.#deadQueues.isLeasedFrom(deadQueue))
  }

  /** From now on deaths overlap that come to this dead queue. */
  overlap(deadQueue: string): void {
    if (this.overlapped.has(deadQueue)) return
    this.overlapped.add(deadQueue)
    this.#deadQueues.overlap(deadQueue)
  }

  /** The queue has this dead queue now. */
  moved(deadQueue: string): void {
    if (this.overlapped.size > 0) this.overlap(deadQueue)
  }

  /** No deaths are under way. */
  endOverlap(): void {
    for (const deadQueue of this.overlapped) this.#deadQueues.over(deadQueue)
    this.overlapped.clear()
  }

  /** The turn behind all that were given. Whoever has it must end it. */
  next(): DeathTurn {
    const { promise, resolve } = Promise.withResolvers<void>()
    const before = this.#last
    this.#last = promise.then(() => before)
    return new DeathTurn(before, resolve)
  }
}
