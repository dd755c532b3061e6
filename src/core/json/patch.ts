/** JSON Patch (RFC 6902) on text: all operations, or none and the reason. Unnamed parts keep their bytes. */
import { parseExactly, sameJson } from './exact.ts'
import { elementNumber, isBelow, MOST_LEVELS, pointerBelow, showPointer, stepsOf } from './pointer.ts'
import { JsonText, withValue } from './text.ts'
import { isNestedDeeper } from './tokens.ts'

/** Values are exact (see exact.ts), and nested at most `MOST_LEVELS` deep. */
export type PatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'move' | 'copy'; readonly from: string; readonly path: string }

type PatchResult =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly index: number; readonly reason: string }

/** `text` is JSON. `mostCharacters` bounds copies of copies. */
export function patchText(
  text: string,
  operations: readonly PatchOperation[],
  mostCharacters: number,
): PatchResult {
  const patch = new Patch(JsonText.of(text), mostCharacters - text.length)
  for (const [index, operation] of operations.entries()) {
    const reason = patch.apply(operation)
    if (reason !== null) return { ok: false, index, reason }
  }
  return { ok: true, text: withValue(text, patch.root) }
}

class Patch {
  root: JsonText
  #room: number

  constructor(root: JsonText, room: number) {
    this.root = root
    this.#room = room
  }

  /** null when done, else why not. */
  apply(operation: PatchOperation): string | null {
    const { path } = operation
    if (operation.op === 'add') return this.#put(path, JsonText.from(operation.value))
    const needed = 'from' in operation ? operation.from : path
    const found = this.#find(needed)
    if (found === undefined) return this.#missing(needed)
    switch (operation.op) {
      case 'replace':
        return this.#replace(path, JsonText.from(operation.value))
      case 'remove':
        return this.#remove(path)
      case 'test':
        return means(found, operation.value) ? null : 'the value there is another'
      case 'move':
        if (needed === path) return null
        if (isBelow(path, needed)) return 'a value cannot be moved into itself'
        return this.#remove(needed) ?? this.#put(path, found)
      case 'copy': {
        const copy = found.copy()
        this.#room -= copy.written.length
        return this.#room < 0 ? 'the payload would become too large' : this.#put(path, copy)
      }
    }
  }

  #find(path: string): JsonText | undefined {
    return stepsOf(path).reduce<JsonText | undefined>((found, step) => found?.at(step), this.root)
  }

  /** Where the path ends. */
  #missing(path: string): string {
    let found = this.root
    let way = ''
    for (const step of stepsOf(path)) {
      const next = found.at(step)
      if (next === undefined && found.kind === 'other') {
        return `${showPointer(way)} is neither an object nor a list`
      }
      way = pointerBelow(way, step)
      if (next === undefined) break
      found = next
    }
    return `there is nothing at ${showPointer(way)}`
  }

  /** Adds a member or element, or replaces a member. */
  #put(path: string, value: JsonText): string | null {
    if (path === '') return this.#replace(path, value)
    const { parent, step } = this.#parent(path)
    if (parent === undefined || parent.kind === 'other') return this.#missing(path)
    if (parent.kind === 'object') {
      parent.set(step, value)
      return null
    }
    const index = step === '-' ? parent.length : elementNumber(step)
    if (index === null) return `it is put into a list, and its last step is no number of an element`
    if (index > parent.length) return `the list has ${parent.length} elements`
    parent.replaceElements(index, 0, [value])
    return null
  }

  /** Something is at `path`. */
  #replace(path: string, value: JsonText): null {
    const { parent, step } = this.#parent(path)
    if (path === '') this.root = value
    else parent?.set(step, value)
    return null
  }

  /** Something is at `path`. */
  #remove(path: string): string | null {
    if (path === '') return 'the whole payload cannot be removed'
    const { parent, step } = this.#parent(path)
    parent?.remove(step)
    return null
  }

  /** The container, if there is one, and the last step. */
  #parent(path: string): { readonly parent: JsonText | undefined; readonly step: string } {
    const at = path.lastIndexOf('/')
    const [step = ''] = stepsOf(path.slice(at))
    return { parent: this.#find(path.slice(0, at)), step }
  }
}

/** The value is nested less deep than some texts. */
function means(text: JsonText, value: unknown): boolean {
  const now = text.toString()
  return !isNestedDeeper(now, MOST_LEVELS) && sameJson(parseExactly(now), value)
}
