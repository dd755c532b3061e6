/**
 * The books of one run: what was sent and what was delivered, item by item. At the end of every run they are
 * reconciled with the store: sent = done + dead + waiting, each item delivered exactly once.
 */
import type { Counts } from './system.ts'

export class Books {
  sent = 0
  delivered = 0
  #deliveries = new Uint8Array(1 << 17)

  /** Numbers for the next items to send. */
  reserve(count: number): number {
    const first = this.sent
    this.sent += count
    return first
  }

  /** Notes one delivery. */
  note(n: number): void {
    if (n >= this.#deliveries.length) {
      const wider = new Uint8Array(Math.max(this.#deliveries.length * 2, n + 1))
      wider.set(this.#deliveries)
      this.#deliveries = wider
    }
    this.#deliveries[n] = (this.#deliveries[n] ?? 0) + 1
    this.delivered++
  }

  /** Throws unless everything sent is accounted for, once. */
  reconcile(counts: Counts, expectedDead: number): void {
    let done = 0
    let repeated = 0
    for (let n = 0; n < this.sent; n++) {
      const deliveries = this.#deliveries[n] ?? 0
      if (deliveries > 0) done++
      if (deliveries > 1) repeated++
    }
    done -= counts.dead
    if (this.sent !== done + counts.dead + counts.waiting || repeated > 0 || counts.dead !== expectedDead) {
      throw new Error(
        `the books do not balance: sent ${this.sent}, done ${done}, dead ${counts.dead} (expected ${expectedDead}), ` +
          `waiting ${counts.waiting}, delivered more than once ${repeated}`,
      )
    }
  }
}
