/** Values of mappings: exact JSON on both sides, JSONata's own between them. */
import { shorten } from '../../api/query.ts'
import {
  isBeyondWhole,
  isRawNumber,
  membersOf,
  type RawNumber,
  rawNumber,
  sameNumber,
} from '../../core/json/exact.ts'
import { MOST_LEVELS, pointerBelow, showPointer } from '../../core/json/pointer.ts'

export class MappingRefusal extends Error {
  override readonly name = 'MappingRefusal'
}

/**
 * Numbers of a payload that JavaScript cannot hold. A mapping computes with JavaScript's value; where it only passes a number on, the
 * original digits are written again.
 */
export class MappingNumbers {
  /** The original digits, by JavaScript's value. */
  readonly #written = new Map<number, string>()

  /** Refuses a payload with numbers that a mapping would take for each other. */
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

  /** The payload's digits; undefined when JavaScript's are right. */
  written(value: number): string | undefined {
    return this.#written.get(value)
  }

  /** A number from a mapping, with the digits it lost. */
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

  /** Refuses a text with a number that has lost its digits. */
  checkText(text: string): void {
    for (const [seen, written] of this.#written) {
      // Whole numbers only: they are names more often than amounts, and short decimals occur in many texts.
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

const cut = (digits: string): string => shorten(digits, 40)

/** The exact value of a result. Bounded by depth alone; the thread bounds time and memory. */
export function mappingResult(result: unknown, numbers: MappingNumbers): unknown {
  if (result === undefined) throw new MappingRefusal('the mapping gives nothing')
  return jsonOf('', result, numbers, 0)
}

function jsonOf(path: string, value: unknown, numbers: MappingNumbers, level: number): unknown {
  if (level > MOST_LEVELS) {
    throw new MappingRefusal(
      `the mapping gives something that is nested more than ${MOST_LEVELS} levels deep`,
    )
  }
  switch (typeof value) {
    case 'number':
      return numbers.exact(value)
    case 'string':
      numbers.checkText(value)
      return value
    case 'boolean':
      return value
    case 'undefined':
      return null
    case 'object':
      if (value === null) return null
      if (isFunction(value)) break
      if (Array.isArray(value)) {
        // By index: lists of JSONata have extra members.
        return Array.from(value, (element, index) =>
          jsonOf(pointerBelow(path, index), element, numbers, level + 1),
        )
      }
      return objectOf(path, value, numbers, level)
  }
  throw new MappingRefusal(`the mapping gives a function, at ${showPointer(path)}`)
}

/** JSONata's functions are marked objects. */
export const isFunction = (value: unknown): boolean =>
  typeof value === 'function' ||
  (typeof value === 'object' &&
    value !== null &&
    ('_jsonata_lambda' in value || '_jsonata_function' in value))

function objectOf(path: string, value: object, numbers: MappingNumbers, level: number): object {
  // Without a prototype every name is only a name.
  const members: Record<string, unknown> = Object.create(null)
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) {
      members[name] = jsonOf(pointerBelow(path, name), member, numbers, level + 1)
    }
  }
  return members
}
