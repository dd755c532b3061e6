/**
 * The order of deaths in overlapping cycles. Letters enter a dead queue, and those of one instance are captured, in the order in which
 * their cycles were formed. Each cycle waits until the ones before it have their serials and times, long before they commit; a rerun keeps
 * what it was given.
 *
 * A cycle waits for its turn without a lock or a connection: the one before could be waiting for either.
 */
import type { Instant } from '../../core/clock.ts'
import type { DeadQueues } from '../cycles/loops.ts'
import type { QueueRecord } from '../records.ts'

export interface DeathPlace {
  /** Serial in the dead queue; null without one. */
  readonly serial: number | null
  /** null for letters of no instance, which are captured when they are filed. */
  readonly capturedAt: Instant | null
}

export class DeathTurn {
  /** Resolves when all earlier turns are over. Awaited without a connection. */
  readonly before: Promise<void>
  readonly #places = new Map<string, DeathPlace>()
  readonly end: () => void
  constructor(before: Promise<void>, end: () => void) {
    this.before = before
    this.end = end
  }

  /** Places in the order of the deaths; `give` makes the missing ones, and the turn ends. */
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

export class DeathOrder {
  readonly #deadQueues: DeadQueues
  /** Dead queues that overlapping deaths go to, including those configured since they began. */
  readonly overlapped = new Set<string>()
  #last: Promise<void> = Promise.resolve()

  constructor(deadQueues: DeadQueues) {
    this.#deadQueues = deadQueues
  }

  /** Deaths in a queue that holds letters do not overlap: its letters are locked before their turn. */
  mayOverlap({ holdsLetters, deadQueue }: QueueRecord): boolean {
    return !holdsLetters && (deadQueue === '' || !this.#deadQueues.isLeasedFrom(deadQueue))
  }

  overlap(deadQueue: string): void {
    if (this.overlapped.has(deadQueue)) return
    this.overlapped.add(deadQueue)
    this.#deadQueues.overlap(deadQueue)
  }

  moved(deadQueue: string): void {
    if (this.overlapped.size > 0) this.overlap(deadQueue)
  }

  endOverlap(): void {
    for (const deadQueue of this.overlapped) this.#deadQueues.over(deadQueue)
    this.overlapped.clear()
  }

  /** The turn behind all given so far. Its owner must end it. */
  next(): DeathTurn {
    const { promise, resolve } = Promise.withResolvers<void>()
    const before = this.#last
    this.#last = promise.then(() => before)
    return new DeathTurn(before, resolve)
  }
}
