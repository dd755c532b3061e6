/** Xids: 96-bit ids of 20 characters, about in the order of time: seconds, machine, process, counter. Clients of webhooks know the form. */
import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'

declare const xidBrand: unique symbol

/** Of `0-9a-v`; the last one has a single bit. */
export type Xid = string & { readonly [xidBrand]: true }

const ALPHABET = '0123456789abcdefghijklmnopqrstuv'
const FORM = /^[0-9a-v]{19}[0g]$/
const COUNTERS = 2 ** 24
const SUFFIX_BITS = 4n

export const parseXid = (text: string): Xid | null => (FORM.test(text) ? (text as Xid) : null)

export const xid = (text: string): Xid => text as Xid

export const secondsOfXid = (id: Xid): number => Number(numberOf(id) >> 64n)

/** No id of this second or later comes before it. */
export const firstXidOf = (second: bigint): Xid => format(second << 64n)

/** In the same block. */
export const xidAfter = (id: Xid, steps: number): Xid => format(numberOf(id) + BigInt(steps))

/** Characters of the counter, with two bits before it. */
const TAIL = 6

/** The first ids of a block, in which only the counter differs. */
export function xidsFrom(first: Xid, count: number): Xid[] {
  const head = first.slice(0, -TAIL)
  const tail = tailOf(first)
  return Array.from({ length: count }, (_, i) => xid(head + tailText(tail + i * 16)))
}

function tailOf(id: Xid): number {
  let tail = 0
  for (const character of id.slice(-TAIL)) tail = tail * 32 + ALPHABET.indexOf(character)
  return tail
}

function tailText(tail: number): string {
  let text = ''
  for (let rest = tail, at = 0; at < TAIL; at++, rest >>>= 5) text = ALPHABET.charAt(rest & 31) + text
  return text
}

function numberOf(id: Xid): bigint {
  let value = 0n
  for (const character of id) value = (value << 5n) | BigInt(ALPHABET.indexOf(character))
  return value >> SUFFIX_BITS
}

function format(value: bigint): Xid {
  let rest = value << SUFFIX_BITS
  let text = ''
  for (let i = 0; i < 20; i++) {
    text = ALPHABET.charAt(Number(rest & 31n)) + text
    rest >>= 5n
  }
  return xid(text)
}

/** Unique to the process and ascending, unless it makes 16 million in a second. */
export class Xids {
  readonly #clock: Clock
  /** Machine and process, random: containers may share both. */
  readonly #maker = randomBytes(5).readUIntBE(0, 5)
  #second = 0
  #counter = 0
  /** Common head of the second's ids, and the tail of the first. */
  #head = ''
  #tail = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#begin(0)
  }

  next(): Xid {
    return this.block(1)
  }

  /** The first of `count` consecutive ids; `xidAfter(first, 1)` and so on are the others. */
  block(count: number): Xid {
    if (count > COUNTERS)
      throw new RangeError(`a block of ${count} ids is larger than the ${COUNTERS} of a second`)
    const second = Number(this.#clock.now() / 1_000_000n)
    if (second > this.#second) this.#begin(second)
    else if (this.#counter + count > COUNTERS) this.#begin(this.#second + 1)
    const first = this.#counter
    this.#counter += count
    return xid(this.#head + tailText(this.#tail + first * 16))
  }

  /** Once a second: bigints would cost more than the rest of an id. */
  #begin(second: number): void {
    const id = format((BigInt(second) << 64n) | (BigInt(this.#maker) << 24n))
    this.#second = second
    this.#counter = 0
    this.#head = id.slice(0, -TAIL)
    this.#tail = tailOf(id)
  }
}
