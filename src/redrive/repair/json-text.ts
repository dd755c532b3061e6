/**
 * A JSON value as text that can be changed in places. What is not changed stays as it was written: white space, the order of members,
 * duplicates, numbers of any length, escapes. Only what is looked into is taken apart, level by level and without recursion, so that a
 * payload that is nested a million levels deep costs no more than another.
 *
 * Of several members with the same name the last one counts, as JSON.parse takes it; once it is set or removed the others are gone
 * too, so that no reader finds the old value.
 */
import { skipSpace, stringEnd, wordEnd } from '../../core/json-scan.ts'
import { JsonLayout } from './json-layout.ts'

/** A text of JSON, and where its objects and arrays end once somebody asks. */
class Source {
  readonly text: string
  #layout: JsonLayout | null = null

  constructor(text: string) {
    this.text = text
  }

  get layout(): JsonLayout {
    this.#layout ??= new JsonLayout(this.text)
    return this.#layout
  }
}

/** A value within a text. */
interface Stretch {
  readonly source: Source
  readonly start: number
  readonly end: number
  /** The number of an object or array in the layout of its text. */
  readonly number: number
}

/** A stretch, and one object with it: lists may have millions of elements. */
interface Element extends Stretch {
  /** From the end of the one before to its own beginning: a comma and white space; null when it was put in, or is the first. */
  readonly separator: string | null
  /** Stands for the stretch once somebody has looked at it, or put another in its place. */
  value: JsonText | null
}

interface Member extends Element {
  /** The name and all up to the value, as it was written. */
  readonly label: string
  /** The one before it with the same name. */
  readonly earlier: Member | null
  isGone: boolean
}

interface Inside<Part> {
  parts: Part[]
  /** White space behind the opening bracket and before the closing one; both empty when nothing was inside. */
  readonly open: string
  readonly close: string
  /** White space when nothing was inside. */
  readonly blank: string
  /** What goes between two parts where nothing was written. */
  readonly separator: string
}

interface ObjectInside extends Inside<Member> {
  /** The members that count. */
  readonly byName: Map<string, Member>
  /** What goes between the name and the value of a new member. */
  readonly colon: string
}

/** A value of a document: as it was written, or as it was changed. Only an object has members, only an array elements. */
export class JsonText {
  readonly #stretch: Stretch
  #object: ObjectInside | null = null
  #array: Inside<Element> | null = null

  private constructor(stretch: Stretch) {
    this.#stretch = stretch
  }

  /** The value of a text, which is JSON without white space around it: nothing is checked here. */
  static of(written: string): JsonText {
    return new JsonText({ source: new Source(written), start: 0, end: written.length, number: 0 })
  }

  static at(stretch: Stretch): JsonText {
    return new JsonText(stretch)
  }

  get kind(): 'object' | 'array' | 'other' {
    const { source, start } = this.#stretch
    const first = source.text[start]
    return first === '{' ? 'object' : first === '[' ? 'array' : 'other'
  }

  /** A string, number, true, false or null as it was written. */
  get written(): string {
    return textOf(this.#stretch)
  }

  /** The same value again, to be changed on its own. */
  copy(): JsonText {
    return this.#isTakenApart ? JsonText.of(this.toString()) : new JsonText(this.#stretch)
  }

  /** Of an object: how many names its members have. */
  get size(): number {
    return this.#members().byName.size
  }

  /** Of an object. */
  member(name: string): JsonText | undefined {
    const member = this.#members().byName.get(name)
    return member && lookedAt(member)
  }

  /** Of an object: gives a member another value, or adds it behind the others. */
  setMember(name: string, value: JsonText): void {
    const { byName, parts, colon } = this.#members()
    const known = byName.get(name)
    if (known !== undefined) {
      known.value = value
      discard(known.earlier)
      return
    }
    const label = `${JSON.stringify(name)}${colon}`
    const added = { ...NOWHERE, separator: null, label, value, earlier: null, isGone: false }
    parts.push(added)
    byName.set(name, added)
  }

  /** Of an object. */
  removeMember(name: string): void {
    const { byName } = this.#members()
    discard(byName.get(name) ?? null)
    byName.delete(name)
  }

  /** Of an array. */
  get length(): number {
    return this.#elements().parts.length
  }

  /** Of an array. */
  element(index: number): JsonText | undefined {
    const element = this.#elements().parts[index]
    return element && lookedAt(element)
  }

  /** Of an array: the element is there. */
  setElement(index: number, value: JsonText): void {
    const element = this.#elements().parts[index]
    if (element !== undefined) element.value = value
  }

  /** Of an array: puts these in the place of `removed` elements from `index` on; those behind move. */
  replaceElements(index: number, removed: number, values: readonly JsonText[]): void {
    const inside = this.#elements()
    const added = values.map((value) => ({ ...NOWHERE, separator: null, value }))
    // Not by splice: a call takes only so many arguments.
    inside.parts = inside.parts.slice(0, index).concat(added, inside.parts.slice(index + removed))
  }

  /** The text as it is now. */
  toString(): string {
    if (!this.#isTakenApart) return this.written
    const pieces: string[] = []
    this.writeInto(pieces)
    return pieces.join('')
  }

  /** Adds the text to others: one that was joined at every level would be copied as often. Recursion goes as deep as was looked. */
  writeInto(pieces: string[]): void {
    if (this.#object !== null) {
      const parts = this.#object.parts.filter(({ isGone }) => !isGone)
      write('{', { ...this.#object, parts }, '}', pieces)
    } else if (this.#array !== null) write('[', this.#array, ']', pieces)
    else pieces.push(this.written)
  }

  get #isTakenApart(): boolean {
    return this.#object !== null || this.#array !== null
  }

  #members(): ObjectInside {
    this.#object ??= objectInside(this.#stretch)
    return this.#object
  }

  #elements(): Inside<Element> {
    this.#array ??= arrayInside(this.#stretch)
    return this.#array
  }
}

/** Of what was put in. */
const NOWHERE: Stretch = { source: new Source(''), start: 0, end: 0, number: -1 }

const textOf = ({ source, start, end }: Stretch): string => source.text.slice(start, end)

/** From here on the value is one and the same for all who ask. */
function lookedAt(element: Element): JsonText {
  element.value ??= JsonText.at(element)
  return element.value
}

function discard(member: Member | null): void {
  for (let one = member; one !== null; one = one.earlier) one.isGone = true
}

function write(
  opening: string,
  { parts, open, close, blank, separator }: Inside<Element & { readonly label?: string }>,
  closing: string,
  pieces: string[],
): void {
  if (parts.length === 0) {
    pieces.push(opening, blank, closing)
    return
  }
  pieces.push(opening, open)
  parts.forEach((part, index) => {
    // What was the first may stand behind another now, and the other way round.
    if (index > 0) pieces.push(part.separator ?? separator)
    if (part.label !== undefined) pieces.push(part.label)
    if (part.value === null) pieces.push(textOf(part))
    else part.value.writeInto(pieces)
  })
  pieces.push(close, closing)
}

function objectInside(stretch: Stretch): ObjectInside {
  const { text } = stretch.source
  const parts: Member[] = []
  const byName = new Map<string, Member>()
  let colon = ':'
  const walk = new Walk(stretch)
  const around = walk.parts((separator, start) => {
    const nameEnd = stringEnd(text, start)
    const valueStart = skipSpace(text, skipSpace(text, nameEnd) + 1)
    const name = String(JSON.parse(text.slice(start, nameEnd)))
    colon = text.slice(nameEnd, valueStart)
    const earlier = byName.get(name) ?? null
    const label = text.slice(start, valueStart)
    const { source, end, number } = walk.valueAt(valueStart)
    const place = { source, start: valueStart, end, number }
    const member = { ...place, separator, value: null, label, earlier, isGone: false }
    parts.push(member)
    byName.set(name, member)
    return end
  })
  const separator = separatorOf(parts, around.open, colon.endsWith(' ') ? ' ' : '')
  return { ...around, parts, byName, colon, separator }
}

function arrayInside(stretch: Stretch): Inside<Element> {
  const parts: Element[] = []
  const walk = new Walk(stretch)
  const around = walk.parts((separator, start) => {
    const { source, end, number } = walk.valueAt(start)
    parts.push({ source, start, end, number, separator, value: null })
    return end
  })
  return { ...around, parts, separator: separatorOf(parts, around.open, '') }
}

/** As between the last two; of a single one, as before it; else as behind the colon. */
function separatorOf(parts: readonly Element[], open: string, otherwise: string): string {
  return parts.at(-1)?.separator ?? `,${open || otherwise}`
}

/** Goes once through what is directly in an object or array. */
class Walk {
  readonly #source: Source
  readonly #start: number
  readonly #end: number
  /** The number of the next object or array that is met. */
  #next: number

  constructor({ source, start, end, number }: Stretch) {
    this.#source = source
    this.#start = start
    this.#end = end
    this.#next = number + 1
  }

  /** `take` is given the beginning of each part and what separates it, and gives its end. */
  parts(take: (separator: string | null, start: number) => number) {
    const { text } = this.#source
    let at = skipSpace(text, this.#start + 1)
    const open = text.slice(this.#start + 1, at)
    if (at === this.#end - 1) return { open: '', close: '', blank: open }
    let separator: string | null = null
    for (;;) {
      const end = take(separator, at)
      const next = skipSpace(text, end)
      if (text[next] !== ',') return { open, close: text.slice(end, next), blank: '' }
      at = skipSpace(text, next + 1)
      const between = text.slice(end, at)
      // One text for all that are alike, in lists of millions.
      if (between !== separator) separator = between
    }
  }

  /** The value that begins here; objects and arrays are met in their order. */
  valueAt(start: number): Stretch {
    const source = this.#source
    const { text, layout } = source
    const first = text[start]
    if (first === '"') return { source, start, end: stringEnd(text, start), number: -1 }
    if (first !== '{' && first !== '[') return { source, start, end: wordEnd(text, start), number: -1 }
    const number = this.#next
    this.#next = layout.followerOf(number)
    return { source, start, end: layout.endOf(number), number }
  }
}

/** Whether arrays and objects lie more than `levels` deep in one another. */
export function isNestedDeeper(text: string, levels: number): boolean {
  let depth = 0
  for (let at = 0; at < text.length; ) {
    const character = text[at]
    if (character === '"') {
      at = stringEnd(text, at)
      continue
    }
    at++
    if (character === '{' || character === '[') {
      if (++depth > levels) return true
    } else if (character === '}' || character === ']') depth--
  }
  return false
}

/** A text of JSON, and the white space around it. */
export function withoutSpace(text: string): {
  readonly before: string
  readonly inner: string
  readonly behind: string
} {
  const start = skipSpace(text, 0)
  const inner = text.slice(start).trimEnd()
  return { before: text.slice(0, start), inner, behind: text.slice(start + inner.length) }
}
