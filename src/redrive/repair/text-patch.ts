/** JSON Patch (RFC 6902) on the text of a document: all operations, or none and the reason. What they do not name keeps its bytes. */
import { isRawNumber, membersOf } from './exact-json.ts'
import { elementNumber, isBelow, pointerBelow, showPointer, stepsOf } from './json-pointer.ts'
import { JsonText, withoutSpace } from './json-text.ts'
import type { PatchOperation } from './patch-operation.ts'
import { sameNumber } from './same-number.ts'

/** The new text, or what stood in the way. */
export type PatchResult =
  | { readonly ok: true; readonly text: string }
  /** Why the operation with this number cannot be done. */
  | { readonly ok: false; readonly index: number; readonly reason: string }

/** `text` is JSON. The new one has at most `mostCharacters`; copies of copies would have no end otherwise. */
export function patchText(
  text: string,
  operations: readonly PatchOperation[],
  mostCharacters: number,
): PatchResult {
  const { before, inner, behind } = withoutSpace(text)
  const patch = new Patch(JsonText.of(inner), mostCharacters - text.length)
  for (const [index, operation] of operations.entries()) {
    const reason = patch.apply(operation)
    if (reason !== null) return { ok: false, index, reason }
  }
  return { ok: true, text: before + patch.text + behind }
}

/** A document on which operations are done, one after the other. */
class Patch {
  #root: JsonText
  /** Characters that may still come in by copies. */
  #room: number

  constructor(root: JsonText, room: number) {
    this.#root = root
    this.#room = room
  }

  get text(): string {
    return this.#root.toString()
  }

  /** Why it cannot be done; null when it was. */
  apply(operation: PatchOperation): string | null {
    const { path } = operation
    switch (operation.op) {
      case 'add':
        return this.#put(path, textOf(operation.value))
      case 'replace':
        return this.#replace(path, textOf(operation.value))
      case 'remove':
        return this.#remove(path)
      case 'test': {
        const found = this.#find(path)
        if (found === undefined) return this.#missing(path)
        return equals(found, operation.value) ? null : 'the value there is another'
      }
      case 'move': {
        const { from } = operation
        const found = this.#find(from)
        if (found === undefined) return this.#missing(from)
        if (from === path) return null
        if (isBelow(path, from)) return 'a value cannot be moved into itself'
        return this.#remove(from) ?? this.#put(path, found)
      }
      case 'copy': {
        const found = this.#find(operation.from)
        if (found === undefined) return this.#missing(operation.from)
        const copy = found.copy()
        this.#room -= copy.written.length
        if (this.#room < 0) return 'the payload would become too large'
        return this.#put(path, copy)
      }
    }
  }

  #find(path: string): JsonText | undefined {
    let found: JsonText | undefined = this.#root
    for (const step of stepsOf(path)) {
      found = found && below(found, step)
      if (found === undefined) return undefined
    }
    return found
  }

  /** Where it is not that there would be something at `path`. */
  #missing(path: string): string {
    let found: JsonText = this.#root
    let way = ''
    for (const step of stepsOf(path)) {
      const next = below(found, step)
      if (next === undefined) {
        if (found.kind === 'other') return `${showPointer(way)} is neither an object nor a list`
        return `there is nothing at ${showPointer(pointerBelow(way, step))}`
      }
      found = next
      way = pointerBelow(way, step)
    }
    return `there is nothing at ${showPointer(path)}`
  }

  /** What a path leads into, and its last step; null when there is nothing to lead into. */
  #parent(path: string): { readonly parent: JsonText; readonly step: string } | null {
    const at = path.lastIndexOf('/')
    const parent = this.#find(path.slice(0, at))
    const [step] = stepsOf(path.slice(at))
    return parent === undefined || step === undefined ? null : { parent, step }
  }

  /** Adds a member or element, or gives a member another value. */
  #put(path: string, value: JsonText): string | null {
    if (path === '') {
      this.#root = value
      return null
    }
    const place = this.#parent(path)
    if (place === null) return this.#missing(path)
    const { parent, step } = place
    if (parent.kind === 'object') {
      parent.setMember(step, value)
      return null
    }
    if (parent.kind !== 'array') return this.#missing(path)
    const index = step === '-' ? parent.length : elementNumber(step)
    if (index === null) return `it is put into a list, and its last step is no number of an element`
    if (index > parent.length) return `the list has ${parent.length} elements`
    parent.replaceElements(index, 0, [value])
    return null
  }

  #replace(path: string, value: JsonText): string | null {
    if (path === '') return this.#put(path, value)
    const place = this.#parent(path)
    if (place === null || below(place.parent, place.step) === undefined) return this.#missing(path)
    const { parent, step } = place
    if (parent.kind === 'object') parent.setMember(step, value)
    else parent.setElement(Number(step), value)
    return null
  }

  #remove(path: string): string | null {
    if (path === '') return 'the whole payload cannot be removed'
    const place = this.#parent(path)
    if (place === null || below(place.parent, place.step) === undefined) return this.#missing(path)
    const { parent, step } = place
    if (parent.kind === 'object') parent.removeMember(step)
    else parent.replaceElements(Number(step), 1, [])
    return null
  }
}

/** A member or an element of a value. */
function below(value: JsonText, step: string): JsonText | undefined {
  if (value.kind === 'object') return value.member(step)
  const index = value.kind === 'array' ? elementNumber(step) : null
  return index === null ? undefined : value.element(index)
}

const textOf = (value: unknown): JsonText => JsonText.of(JSON.stringify(value))

/** Whether a text means an exact value. Recursion goes as deep as the value. */
function equals(text: JsonText, value: unknown): boolean {
  if (Array.isArray(value)) {
    if (text.kind !== 'array' || text.length !== value.length) return false
    return value.every((element, index) => isMeantBy(text.element(index), element))
  }
  const members = membersOf(value)
  if (members !== null) {
    if (text.kind !== 'object' || text.size !== Object.keys(members).length) return false
    return Object.entries(members).every(([name, member]) => isMeantBy(text.member(name), member))
  }
  if (text.kind !== 'other') return false
  const isNumber = /^[-\d]/.test(text.written)
  if (isRawNumber(value)) return isNumber && sameNumber(text.written, value.rawJSON)
  if (typeof value === 'number') return isNumber && sameNumber(text.written, JSON.stringify(value))
  return !isNumber && JSON.parse(text.written) === value
}

const isMeantBy = (text: JsonText | undefined, value: unknown): boolean =>
  text !== undefined && equals(text, value)
