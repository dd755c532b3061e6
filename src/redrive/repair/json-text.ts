/**
 * A JSON value as text that can be changed in places. What is not changed stays as it was written: white space, the order of members,
 * duplicates, numbers of any length, escapes. Only what is looked into is taken apart, without recursion, so that a payload that is
 * nested a million levels deep costs no more than another.
 *
 * Of several members with the same name the last one counts, as JSON.parse takes it; once it is set or removed the others are gone
 * too, so that no reader finds the old value.
 */
import { skipSpace, stringEnd, wordEnd } from '../../core/json-scan.ts'

interface Element {
  /** From the end of the one before to its own beginning: a comma and white space; null when it was put in, or is the first. */
  separator: string | null
  value: JsonText
}

interface Member extends Element {
  readonly name: string
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
  /** JSON, without white space around it. */
  readonly #written: string
  #object: ObjectInside | null = null
  #array: Inside<Element> | null = null

  /** `written` is JSON: nothing is checked here. */
  constructor(written: string) {
    this.#written = written
  }

  get kind(): 'object' | 'array' | 'other' {
    if (this.#written.startsWith('{')) return 'object'
    return this.#written.startsWith('[') ? 'array' : 'other'
  }

  /** A string, number, true, false or null as it was written. */
  get written(): string {
    return this.#written
  }

  /** Of an object: the names of its members, each once. */
  names(): readonly string[] {
    return [...this.#members().byName.keys()]
  }

  /** Of an object. */
  member(name: string): JsonText | undefined {
    return this.#members().byName.get(name)?.value
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
    const added = { separator: null, name, label, value, earlier: null, isGone: false }
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
    return this.#elements().parts[index]?.value
  }

  /** Of an array: the element is there. */
  setElement(index: number, value: JsonText): void {
    const element = this.#elements().parts[index]
    if (element !== undefined) element.value = value
  }

  /** Of an array: those from `index` on move back by one. */
  insertElement(index: number, value: JsonText): void {
    this.#elements().parts.splice(index, 0, { separator: null, value })
  }

  /** Of an array. */
  removeElement(index: number): void {
    this.#elements().parts.splice(index, 1)
  }

  /** The text as it is now. Recursion goes as deep as was looked. */
  toString(): string {
    if (this.#object !== null) {
      const { parts } = this.#object
      return write('{', { ...this.#object, parts: parts.filter(({ isGone }) => !isGone) }, '}')
    }
    return this.#array === null ? this.#written : write('[', this.#array, ']')
  }

  #members(): ObjectInside {
    this.#object ??= objectInside(this.#written)
    return this.#object
  }

  #elements(): Inside<Element> {
    this.#array ??= arrayInside(this.#written)
    return this.#array
  }
}

function discard(member: Member | null): void {
  for (let one = member; one !== null; one = one.earlier) one.isGone = true
}

function write(
  opening: string,
  { parts, open, close, blank, separator }: Inside<Element & { readonly label?: string }>,
  closing: string,
): string {
  if (parts.length === 0) return opening + blank + closing
  const texts = [opening, open]
  parts.forEach((part, index) => {
    // What was the first may stand behind another now, and the other way round.
    if (index > 0) texts.push(part.separator ?? separator)
    texts.push(part.label ?? '', part.value.toString())
  })
  texts.push(close, closing)
  return texts.join('')
}

function objectInside(text: string): ObjectInside {
  const parts: Member[] = []
  const byName = new Map<string, Member>()
  let colon = ':'
  const around = walk(text, (separator, start) => {
    const nameEnd = stringEnd(text, start)
    const valueStart = skipSpace(text, skipSpace(text, nameEnd) + 1)
    const end = valueEnd(text, valueStart)
    const name = String(JSON.parse(text.slice(start, nameEnd)))
    colon = text.slice(nameEnd, valueStart)
    const earlier = byName.get(name) ?? null
    const value = new JsonText(text.slice(valueStart, end))
    const member = { separator, name, label: text.slice(start, valueStart), value, earlier, isGone: false }
    parts.push(member)
    byName.set(name, member)
    return end
  })
  const separator = separatorOf(parts, around.open, colon.endsWith(' ') ? ' ' : '')
  return { ...around, parts, byName, colon, separator }
}

function arrayInside(text: string): Inside<Element> {
  const parts: Element[] = []
  const around = walk(text, (separator, start) => {
    const end = valueEnd(text, start)
    parts.push({ separator, value: new JsonText(text.slice(start, end)) })
    return end
  })
  return { ...around, parts, separator: separatorOf(parts, around.open, '') }
}

/** As between the last two; of a single one, as before it; else as behind the colon. */
function separatorOf(parts: readonly Element[], open: string, otherwise: string): string {
  return parts.at(-1)?.separator ?? `,${open || otherwise}`
}

/** Goes through an object or array; `take` is given the beginning of each part and what separates it, and gives its end. */
function walk(text: string, take: (separator: string | null, start: number) => number) {
  let at = skipSpace(text, 1)
  const open = text.slice(1, at)
  if (at === text.length - 1) return { open: '', close: '', blank: open }
  let separator: string | null = null
  for (;;) {
    const end = take(separator, at)
    const next = skipSpace(text, end)
    if (text[next] !== ',') return { open, close: text.slice(end, next), blank: '' }
    at = skipSpace(text, next + 1)
    separator = text.slice(end, at)
  }
}

/** Behind the value that begins at `start`. */
function valueEnd(text: string, start: number): number {
  const first = text[start]
  if (first === '"') return stringEnd(text, start)
  if (first !== '{' && first !== '[') return wordEnd(text, start)
  let depth = 0
  for (let at = start; at < text.length; ) {
    const character = text[at]
    if (character === '"') {
      at = stringEnd(text, at)
      continue
    }
    at++
    if (character === '{' || character === '[') depth++
    else if ((character === '}' || character === ']') && --depth === 0) return at
  }
  return text.length
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
