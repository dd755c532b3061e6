/**
 * Xids: 96-bit ids of 20 characters whose order is about their order in time: four bytes of seconds, three that stand for the
 * machine, two for the process, three of a counter. Clients of webhooks read ids of this form, and some check them.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'

declare const xidBrand: unique symbol

/** 20 characters of `0-9a-v`; the last one has only one bit. */
export type Xid = string & { readonly [xidBrand]: true }

const ALPHABET = '0123456789abcdefghijklmnopqrstuv'
const FORM = /^[0-9a-v]{19}[0g]$/
const COUNTERS = 2 ** 24
const SUFFIX_BITS = 4n

/** The text as an xid, or null when it is none. */
export const parseXid = (text: string): Xid | null => (FORM.test(text) ? (text as Xid) : null)

/** Names a text from the store as the xid that it is. */
export const xid = (text: string): Xid => text as Xid

/** When it was made, in whole seconds since 1970. */
export const secondsOfXid = (id: Xid): number => Number(numberOf(id) >> 64n)

/** No id that was made in this second or later comes before it. */
export const firstXidOf = (second: bigint): Xid => format(second << 64n)

/** The id `steps` after this one in its block. */
export const xidAfter = (id: Xid, steps: number): Xid => format(numberOf(id) + BigInt(steps))

/** The counter is in the last characters, together with two bits before it. */
const TAIL = 6

/** The first `count` ids of a block. Within a block only the counter differs, which makes this quick. */
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

/** Makes ids that no other process makes. Those of one process ascend, unless it makes 16 million of them in a second. */
export class Xids {
  readonly #clock: Clock
  /** Machine and process: random, so that processes in containers, which share both, differ too. */
  readonly #maker = randomBytes(5).readUIntBE(0, 5)
  #second = 0
  #counter = 0
  /** What all ids of the second begin with, and the end of the first of them. */
  #head = ''
  #tail = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#begin(0)
  }

  next(): Xid {
    return this.block(1)
  }

  /** The first of `count` new ids that follow each other: the others are `xidAfter(first, 1)` and so on. */
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

  /** Big numbers are needed once a second only: they would cost more than all the rest of an id. */
  #begin(second: number): void {
    const id = format((BigInt(second) << 64n) | (BigInt(this.#maker) << 24n))
    this.#second = second
    this.#counter = 0
    this.#head = id.slice(0, -TAIL)
    this.#tail = tailOf(id)
  }
}
