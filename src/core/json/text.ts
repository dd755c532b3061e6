/**
 * A JSON value as text that can be changed in places. What is not changed stays as it was written: white space, the order of members,
 * duplicates, numbers of any length, escapes. Only what is looked into is taken apart, level by level and without recursion, so that a
 * payload that is nested a million levels deep costs no more than another.
 *
 * Of several members with the same name the last one counts, as JSON.parse takes it; once it is set or removed the others are gone
 * too, so that no reader finds the old value.
 */
import { elementNumber } from './pointer.ts'
import { isClosing, isOpening, nameAt, skipSpace, tokenEnd } from './tokens.ts'

/** A text of JSON, and where its objects and arrays end once somebody asks. */
class Source {
  readonly text: string
  #ends: Int32Array | null = null

  constructor(text: string) {
    this.text = text
  }

  /**
   * Behind the value that begins at `start`. What lies inside is not read again at each level: a value at the bottom of 500 levels would
   * be read 500 times otherwise.
   */
  endOf(start: number): number {
    if (!isOpening(this.text.charCodeAt(start))) return tokenEnd(this.text, start)
    this.#ends ??= containerEnds(this.text)
    return this.#ends[start] ?? 0
  }
}

/** By where they begin. One number for each character: as objects, the ends of millions of arrays would not fit into a repair's memory. */
function containerEnds(text: string): Int32Array {
  const ends = new Int32Array(text.length)
  const open: number[] = []
  for (let at = skipSpace(text, 0), end = 0; at < text.length; at = skipSpace(text, end)) {
    end = tokenEnd(text, at)
    const code = text.charCodeAt(at)
    if (isOpening(code)) open.push(at)
    else if (isClosing(code)) ends[open.pop() ?? 0] = end
  }
  return ends
}

/** A member or an element: one object each, since lists may have millions of them. */
interface Part {
  /** Where its value stands. */
  readonly start: number
  readonly end: number
  /** From the end of the one before to its own beginning: a comma and white space; null when it was put in, or is the first. */
  readonly separator: string | null
  /** The name and all up to the value, as it was written; empty for an element. */
  readonly label: string
  /** The member before it with the same name. */
  readonly earlier: Part | null
  /** Stands for what was written once somebody has looked at it, or put another in its place. */
  value: JsonText | null
  isGone: boolean
}

const added = (value: JsonText, label = ''): Part => ({
  start: 0,
  end: 0,
  separator: null,
  label,
  earlier: null,
  value,
  isGone: false,
})

interface Inside {
  parts: Part[]
  /** The members that count; null: it is an array. */
  readonly byName: Map<string, Part> | null
  /** White space behind the opening bracket and before the closing one; both empty when nothing was inside. */
  readonly open: string
  readonly close: string
  /** White space when nothing was inside. */
  readonly blank: string
  /** What goes between two parts where nothing was written. */
  readonly separator: string
  /** What goes between the name and the value of a new member. */
  readonly colon: string
}

/** A value of a document: as it was written, or as it was changed. */
export class JsonText {
  readonly #source: Source
  readonly #start: number
  readonly #end: number
  #inside: Inside | null = null

  private constructor(source: Source, start: number, end: number) {
    this.#source = source
    this.#start = start
    this.#end = end
  }

  /** The value of a text, which is JSON: nothing is checked here. */
  static of(text: string): JsonText {
    return new JsonText(new Source(text), skipSpace(text, 0), text.trimEnd().length)
  }

  /** A value with exact numbers. */
  static from(value: unknown): JsonText {
    return JsonText.of(JSON.stringify(value))
  }

  get kind(): 'object' | 'array' | 'other' {
    const first = this.#source.text[this.#start]
    return first === '{' ? 'object' : first === '[' ? 'array' : 'other'
  }

  /** The text before any change. */
  get written(): string {
    return this.#source.text.slice(this.#start, this.#end)
  }

  /** The same value again, to be changed on its own. */
  copy(): JsonText {
    if (this.#inside !== null) return JsonText.of(this.toString())
    return new JsonText(this.#source, this.#start, this.#end)
  }

  /** Of an array. */
  get length(): number {
    return this.#opened().parts.length
  }

  /** A member of an object, or an element of an array; from here on it is one and the same for all who ask. */
  at(step: string | number): JsonText | undefined {
    const part = this.#part(step)
    if (part !== undefined) part.value ??= new JsonText(this.#source, part.start, part.end)
    return part?.value ?? undefined
  }

  /** Gives a member or an element another value, or adds a member behind the others. */
  set(step: string | number, value: JsonText): void {
    const part = this.#part(step)
    if (part !== undefined) {
      part.value = value
      discard(part.earlier)
      return
    }
    const { parts, byName, colon } = this.#opened()
    const member = added(value, `${JSON.stringify(step)}${colon}`)
    parts.push(member)
    byName?.set(String(step), member)
  }

  /** Removes a member or an element, if it is there. */
  remove(step: string): void {
    const part = this.#part(step)
    if (part === undefined) return
    if (this.kind === 'array') {
      this.replaceElements(Number(step), 1, [])
      return
    }
    discard(part)
    this.#opened().byName?.delete(step)
  }

  /** Of an array: puts these in the place of `removed` elements from `index` on; those behind move. */
  replaceElements(index: number, removed: number, values: readonly JsonText[]): void {
    const inside = this.#opened()
    const { parts } = inside
    // Not by splice: a call takes only so many arguments.
    inside.parts = parts.slice(0, index).concat(
      values.map((value) => added(value)),
      parts.slice(index + removed),
    )
  }

  toString(): string {
    if (this.#inside === null) return this.written
    const pieces: string[] = []
    this.#writeInto(pieces)
    return pieces.join('')
  }

  /** Adds the text to others: one that was joined at every level would be copied as often. Recursion goes as deep as was looked. */
  #writeInto(pieces: string[]): void {
    if (this.#inside === null) {
      pieces.push(this.written)
      return
    }
    const { parts, open, close, blank, separator } = this.#inside
    const left = parts.filter(({ isGone }) => !isGone)
    pieces.push(this.kind === 'object' ? '{' : '[', left.length === 0 ? blank : open)
    left.forEach((part, index) => {
      // What was the first may stand behind another now, and the other way round.
      if (index > 0) pieces.push(part.separator ?? separator)
      pieces.push(part.label)
      if (part.value === null) pieces.push(this.#source.text.slice(part.start, part.end))
      else part.value.#writeInto(pieces)
    })
    pieces.push(left.length === 0 ? '' : close, this.kind === 'object' ? '}' : ']')
  }

  #part(step: string | number): Part | undefined {
    if (this.kind === 'other') return undefined
    const { parts, byName } = this.#opened()
    if (byName !== null) return byName.get(String(step))
    return parts[typeof step === 'number' ? step : (elementNumber(step) ?? -1)]
  }

  #opened(): Inside {
    this.#inside ??= insideOf(this.#source, this.#start, this.#end)
    return this.#inside
  }
}

/** A document with another value; white space around it stays. */
export const withValue = (text: string, value: JsonText): string =>
  `${text.slice(0, skipSpace(text, 0))}${value}${text.slice(text.trimEnd().length)}`

function discard(part: Part | null): void {
  for (let one = part; one !== null; one = one.earlier) one.isGone = true
}

/** What is directly in the object or array that stands there. */
function insideOf(source: Source, start: number, end: number): Inside {
  const { text } = source
  const byName = text[start] === '{' ? new Map<string, Part>() : null
  const parts: Part[] = []
  let at = skipSpace(text, start + 1)
  const open = text.slice(start + 1, at)
  let colon = ':'
  if (at === end - 1) return { parts, byName, open: '', close: '', blank: open, separator: ',', colon }
  let separator: string | null = null
  for (;;) {
    const member = byName === null ? null : nameAt(text, at)
    const valueStart = member?.valueStart ?? at
    const part: Part = {
      start: valueStart,
      end: source.endOf(valueStart),
      separator,
      label: text.slice(at, valueStart),
      earlier: (member && byName?.get(member.name)) ?? null,
      value: null,
      isGone: false,
    }
    parts.push(part)
    if (member !== null) {
      byName?.set(member.name, part)
      colon = text.slice(member.nameEnd, valueStart)
    }
    const next = skipSpace(text, part.end)
    if (text[next] !== ',') {
      // As between the last two; of a single one, as before it; else as behind the colon.
      const usual = separator ?? `,${open || (colon.endsWith(' ') ? ' ' : '')}`
      return { parts, byName, open, close: text.slice(part.end, next), blank: '', separator: usual, colon }
    }
    at = skipSpace(text, next + 1)
    const between = text.slice(part.end, at)
    // One text for all that are alike, in lists of millions.
    if (between !== separator) separator = between
  }
}
