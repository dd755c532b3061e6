/**
 * A JSON value as text that can be changed in places. Everything else stays as written: white space, order, duplicates, long numbers, escapes.
 * Only what is looked into is parsed, level by level and without recursion, so deep nesting costs nothing.
 *
 * Of members with one name the last counts, as in JSON.parse; setting or removing it removes the others, so that no reader finds an old value.
 */
import { elementNumber } from './pointer.ts'
import { isClosing, isOpening, nameAt, skipSpace, tokenEnd } from './tokens.ts'

/** A text, and the ends of its containers once asked for. */
class Source {
  readonly text: string
  #ends: Int32Array | null = null

  constructor(text: string) {
    this.text = text
  }

  /** Behind the value at `start`. Ends are computed once: the bottom of 500 levels would be read 500 times otherwise. */
  endOf(start: number): number {
    if (!isOpening(this.text.charCodeAt(start))) return tokenEnd(this.text, start)
    this.#ends ??= containerEnds(this.text)
    return this.#ends[start] ?? 0
  }
}

/** By start. An Int32Array: as objects, the ends of millions of arrays would not fit into a repair's memory. */
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

/** A member or element; lists may have millions. */
interface Part {
  readonly start: number
  readonly end: number
  /** Comma and white space before it; null when added, or first. */
  readonly separator: string | null
  /** Name and all up to the value, as written; empty for an element. */
  readonly label: string
  /** The previous member of the same name. */
  readonly earlier: Part | null
  /** Replaces the written text once looked at or set. */
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
  /** Members that count; null: an array. */
  readonly byName: Map<string, Part> | null
  /** White space inside the brackets; empty when nothing was inside. */
  readonly open: string
  readonly close: string
  /** White space when nothing was inside. */
  readonly blank: string
  /** Between two parts where nothing was written. */
  readonly separator: string
  /** Between the name and value of a new member. */
  readonly colon: string
}

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

  /** Unchecked. */
  static of(text: string): JsonText {
    return new JsonText(new Source(text), skipSpace(text, 0), text.trimEnd().length)
  }

  static from(value: unknown): JsonText {
    return JsonText.of(JSON.stringify(value))
  }

  get kind(): 'object' | 'array' | 'other' {
    const first = this.#source.text[this.#start]
    return first === '{' ? 'object' : first === '[' ? 'array' : 'other'
  }

  get written(): string {
    return this.#source.text.slice(this.#start, this.#end)
  }

  /** To be changed on its own. */
  copy(): JsonText {
    if (this.#inside !== null) return JsonText.of(this.toString())
    return new JsonText(this.#source, this.#start, this.#end)
  }

  /** Of an array. */
  get length(): number {
    return this.#opened().parts.length
  }

  /** Always the same object for the same part. */
  at(step: string | number): JsonText | undefined {
    const part = this.#part(step)
    if (part !== undefined) part.value ??= new JsonText(this.#source, part.start, part.end)
    return part?.value ?? undefined
  }

  /** Replaces a member or element, or adds a member at the end. */
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

  /** Of an array: replaces `removed` elements from `index` on. */
  replaceElements(index: number, removed: number, values: readonly JsonText[]): void {
    const inside = this.#opened()
    const { parts } = inside
    // Not splice: a call takes only so many arguments.
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

  /** Into pieces: joined at every level, texts would be copied as often. Recurses as deep as was looked into. */
  #writeInto(pieces: string[]): void {
    if (this.#inside === null) {
      pieces.push(this.written)
      return
    }
    const { parts, open, close, blank, separator } = this.#inside
    const left = parts.filter(({ isGone }) => !isGone)
    pieces.push(this.kind === 'object' ? '{' : '[', left.length === 0 ? blank : open)
    left.forEach((part, index) => {
      // The first part may have moved.
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

export const withValue = (text: string, value: JsonText): string =>
  `${text.slice(0, skipSpace(text, 0))}${value}${text.slice(text.trimEnd().length)}`

function discard(part: Part | null): void {
  for (let one = part; one !== null; one = one.earlier) one.isGone = true
}

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
      // As between the last two; for a single one as before it, else as behind the colon.
      const usual = separator ?? `,${open || (colon.endsWith(' ') ? ' ' : '')}`
      return { parts, byName, open, close: text.slice(part.end, next), blank: '', separator: usual, colon }
    }
    at = skipSpace(text, next + 1)
    const between = text.slice(part.end, at)
    // One string for equal separators, in lists of millions.
    if (between !== separator) separator = between
  }
}
