/**
 * What a dispatcher holds: messages that it claimed and has not settled. Messages of one line wait for each
 * other; all others are delivered in the order in which they were claimed.
 */
import type { Instant } from '../../../core/clock.ts'
import { lineOf } from '../sql/line.ts'
import type { ClaimedMessage } from '../table/message.ts'

/** A claimed message on its way. */
export interface Held {
  readonly message: ClaimedMessage
  readonly line: string | null
  /** The claim lapses then, unless it is renewed. */
  claimedUntil: Instant
  /** Set while it is being delivered: ends the delivery with this reason. */
  cutShort: ((reason: Error) => void) | null
  deliverBy: Instant | null
  /** What came of it is known, and is being written down. */
  isOver: boolean
  /** It was claimed once more since then. */
  isClaimedAgain: boolean
}

export class HeldMessages {
  readonly #all = new Map<string, Held>()
  #ready: Held[] = []
  #head = 0
  /** Their lines have moved on: they go before all others. */
  readonly #resumed: Held[] = []
  /** The lines in which a message is being delivered, with those that were found behind it. */
  readonly #lines = new Map<string, Held[]>()
  /** How many of a line are held. */
  readonly #counts = new Map<string, number>()

  get size(): number {
    return this.#all.size
  }

  get(id: string): Held | undefined {
    return this.#all.get(id)
  }

  values(): Iterable<Held> {
    return this.#all.values()
  }

  /** Holds a message that is to be delivered after those that are there. */
  add(message: ClaimedMessage, claimedUntil: Instant): void {
    this.#ready.push(this.keep(message, claimedUntil))
  }

  /** Holds a message that is not to be delivered from here. */
  keep(message: ClaimedMessage, claimedUntil: Instant): Held {
    const stands = lineOf(message)
    const line = stands === null ? null : JSON.stringify([stands.tenantId, stands.orderingKey])
    const held: Held = {
      message,
      line,
      claimedUntil,
      cutShort: null,
      deliverBy: null,
      isOver: false,
      isClaimedAgain: false,
    }
    this.#all.set(message.id, held)
    if (line !== null) this.#counts.set(line, (this.#counts.get(line) ?? 0) + 1)
    return held
  }

  /** The next message that can be delivered now. */
  next(): Held | undefined {
    const resumed = this.#resumed.shift()
    if (resumed !== undefined) return resumed
    while (this.#head < this.#ready.length) {
      const held = this.#ready[this.#head++]
      if (held === undefined) continue
      if (held.line === null) return held
      const behind = this.#lines.get(held.line)
      if (behind === undefined) {
        this.#lines.set(held.line, [])
        return held
      }
      behind.push(held)
    }
    this.#ready = []
    this.#head = 0
    return undefined
  }

  /** The delivery is over and its line goes on with the next. */
  passed({ line }: Held): void {
    if (line === null) return
    const next = this.#lines.get(line)?.shift()
    if (next === undefined) this.#lines.delete(line)
    else this.#resumed.push(next)
  }

  /** The delivery is over and its line must not go on: gives what stands behind it. */
  broken({ line }: Held): readonly Held[] {
    if (line === null) return []
    const behind = this.#lines.get(line) ?? []
    this.#lines.delete(line)
    const waiting = this.#waiting()
    this.#ready = waiting.filter((held) => held.line !== line)
    return [...behind, ...waiting.filter((held) => held.line === line)]
  }

  /** Gives up everything that is not being delivered. */
  takeWaiting(): readonly Held[] {
    const behind = [...this.#lines.values()].flatMap((waiting) => waiting.splice(0))
    const resumed = this.#resumed.splice(0)
    for (const { line } of resumed) if (line !== null) this.#lines.delete(line)
    return [...resumed, ...behind, ...this.#waiting()]
  }

  /** It is settled, or no longer ours. True when it was the last of its line. */
  drop({ message, line }: Held): boolean {
    this.#all.delete(message.id)
    if (line === null) return false
    const left = (this.#counts.get(line) ?? 1) - 1
    if (left > 0) this.#counts.set(line, left)
    else this.#counts.delete(line)
    return left === 0
  }

  #waiting(): Held[] {
    const waiting = this.#ready.slice(this.#head)
    this.#ready = []
    this.#head = 0
    return waiting
  }
}
