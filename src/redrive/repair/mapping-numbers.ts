/**
 * The numbers of a payload that JavaScript cannot hold. A mapping computes with what JavaScript makes of them; where it only passes
 * them on, they are written again as they were.
 */
import { isBeyondWhole, isRawNumber, membersOf, type RawNumber, rawNumber } from './exact-json.ts'
import { MappingRefusal } from './mapping-refusal.ts'
import { sameNumber } from './same-number.ts'

/** Those of one payload. */
export class MappingNumbers {
  /** What a mapping sees, and what was written. */
  readonly #written = new Map<number, string>()

  /** Refuses a payload whose numbers cannot be told apart by a mapping: it would take one for the other. */
  constructor(payload: unknown) {
    for (const number of numbersIn(payload)) if (isRawNumber(number)) this.#note(number.rawJSON)
    if (this.#written.size === 0) return
    for (const number of numbersIn(payload)) if (!isRawNumber(number)) this.#compare(number, String(number))
  }

  #note(text: string): void {
    const seen = Number(text)
    if (!Number.isFinite(seen) || seen === 0) {
      throw new MappingRefusal(`the payload has the number ${cut(text)}, which a mapping cannot read`)
    }
    this.#compare(seen, text)
    this.#written.set(seen, text)
  }

  #compare(seen: number, text: string): void {
    const other = this.#written.get(seen)
    if (other === undefined || sameNumber(other, text)) return
    throw new MappingRefusal(
      `the payload has the numbers ${cut(other)} and ${cut(text)}, which are one and the same to a mapping`,
    )
  }

  /** How the payload writes a number; undefined when JavaScript writes it right. */
  written(value: number): string | undefined {
    return this.#written.get(value)
  }

  /** A number that a mapping gave, with the digits that it lost. */
  exact(value: number): number | RawNumber {
    if (!Number.isFinite(value)) throw new MappingRefusal('the mapping gives a number that is no JSON')
    const text = this.#written.get(value)
    if (text !== undefined) return rawNumber(text)
    if (this.#written.size > 0 && isBeyondWhole(value)) {
      throw new MappingRefusal(
        `the mapping gives ${value}, which may have been computed from a number that it cannot read exactly`,
      )
    }
    return value
  }

  /** A text that a mapping gave; refused when it has a number in it that has lost its digits. */
  checkText(text: string): void {
    for (const [seen, written] of this.#written) {
      // Whole numbers only: they are names more often than amounts, and short decimals are in many a text.
      if (!isBeyondWhole(seen) || !text.includes(String(seen)) || sameNumber(written, String(seen))) continue
      throw new MappingRefusal(
        `the mapping writes the number ${cut(written)} as ${seen}; use $string, which knows all digits`,
      )
    }
  }
}

function* numbersIn(value: unknown): Generator<number | RawNumber> {
  const waiting = [value]
  while (waiting.length > 0) {
    const one = waiting.pop()
    if (typeof one === 'number' || isRawNumber(one)) yield one
    else if (Array.isArray(one)) for (const element of one) waiting.push(element)
    else for (const member of Object.values(membersOf(one) ?? {})) waiting.push(member)
  }
}

const MOST_DIGITS_SHOWN = 40

const cut = (digits: string): string =>
  digits.length > MOST_DIGITS_SHOWN ? `${digits.slice(0, MOST_DIGITS_SHOWN)}…` : digits
