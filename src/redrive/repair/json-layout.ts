/**
 * Where the objects and arrays of a JSON text end, found in one pass over it. Whoever takes a text apart level by level steps over
 * what lies inside without reading it again: a value at the bottom of 500 levels would be read 500 times otherwise.
 */
import { stringEnd } from '../../core/json-scan.ts'

const QUOTE = 0x22
const OPENING_BRACKET = 0x5b
const CLOSING_BRACKET = 0x5d
const OPENING_BRACE = 0x7b
const CLOSING_BRACE = 0x7d

const FIRST_CAPACITY = 256

/** The objects and arrays of one text, numbered in the order in which they begin. The text is JSON: nothing is checked here. */
export class JsonLayout {
  /** Behind the closing bracket of each. Numbers in typed arrays: objects would take many times the memory of the text. */
  #ends = new Int32Array(FIRST_CAPACITY)
  /** The number of the first one that begins behind it. */
  #followers = new Int32Array(FIRST_CAPACITY)
  #count = 0

  constructor(text: string) {
    const open: number[] = []
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) at = stringEnd(text, at) - 1
      else if (code === OPENING_BRACE || code === OPENING_BRACKET) open.push(this.#begin())
      else if (code === CLOSING_BRACE || code === CLOSING_BRACKET) {
        const number = open.pop()
        if (number !== undefined) this.#finish(number, at + 1)
      }
    }
  }

  /** Behind the object or array with this number. */
  endOf(number: number): number {
    return this.#ends[number] ?? 0
  }

  /** The number of the first object or array behind this one and all that it holds. */
  followerOf(number: number): number {
    return this.#followers[number] ?? 0
  }

  #begin(): number {
    if (this.#count === this.#ends.length) {
      this.#ends = doubled(this.#ends)
      this.#followers = doubled(this.#followers)
    }
    return this.#count++
  }

  #finish(number: number, end: number): void {
    this.#ends[number] = end
    this.#followers[number] = this.#count
  }
}

function doubled(numbers: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(numbers.length * 2)
  larger.set(numbers)
  return larger
}
