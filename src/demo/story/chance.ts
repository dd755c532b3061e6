/** Chance that can be repeated: the same seed gives the same demo. */

export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** Goes on from another seed. */
  restart(seed: number): void {
    this.#state = seed >>> 0
  }

  /** From 0 up to, and without, 1. */
  next(): number {
    // A Weyl sequence, mixed twice: even enough for invented orders.
    this.#state = (this.#state + 0x9e3779b9) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 0x1_0000_0000
  }

  /** A whole number from `from` to `to`, both included. */
  whole(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1))
  }

  /** True in `share` of all cases. */
  isOne(share: number): boolean {
    return this.next() < share
  }

  pick<T>(all: readonly T[]): T {
    const [picked] = all.slice(this.whole(0, all.length - 1))
    if (picked === undefined) throw new Error('there is nothing to pick from')
    return picked
  }

  /** One of them, more often those of greater weight. */
  pickBy<T extends { readonly weight: number }>(all: readonly T[]): T {
    let rest = this.next() * all.reduce((sum, { weight }) => sum + weight, 0)
    for (const each of all) {
      rest -= each.weight
      if (rest < 0) return each
    }
    return this.pick(all)
  }

  /** So many hexadecimal digits. */
  hex(digits: number): string {
    return Array.from({ length: digits }, () => this.whole(0, 15).toString(16)).join('')
  }

  uuid(): string {
    return `${this.hex(8)}-${this.hex(4)}-4${this.hex(3)}-a${this.hex(3)}-${this.hex(12)}`
  }
}
