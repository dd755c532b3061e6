/** How one JSON value becomes another, as operations of JSON Patch: what is the same in both is not named, and keeps its bytes. */
import { membersOf, sameJson } from './exact-json.ts'
import { pointerBelow } from './json-pointer.ts'
import type { PatchOperation } from './patch-operation.ts'

/** The operations that turn `before` into `after`, to be done in this order. Both are exact, and not nested without end. */
export function differences(before: unknown, after: unknown): readonly PatchOperation[] {
  const operations: PatchOperation[] = []
  compare('', before, after, operations)
  return operations
}

function compare(path: string, before: unknown, after: unknown, operations: PatchOperation[]): void {
  if (Array.isArray(before) && Array.isArray(after)) {
    compareLists(path, before, after, operations)
    return
  }
  const old = membersOf(before)
  const now = membersOf(after)
  if (old !== null && now !== null) compareObjects(path, old, now, operations)
  else if (!sameJson(before, after)) operations.push({ op: 'replace', path, value: after })
}

type Members = Readonly<Record<string, unknown>>

function compareObjects(path: string, before: Members, after: Members, operations: PatchOperation[]): void {
  for (const name of Object.keys(before)) {
    const below = pointerBelow(path, name)
    if (Object.hasOwn(after, name)) compare(below, before[name], after[name], operations)
    else operations.push({ op: 'remove', path: below })
  }
  for (const name of Object.keys(after)) {
    if (Object.hasOwn(before, name)) continue
    operations.push({ op: 'add', path: pointerBelow(path, name), value: after[name] })
  }
}

/**
 * What is the same at both ends stays. Between these, elements are compared one by one, and what is left over is removed or added:
 * not the fewest operations, but as many steps as there are elements.
 */
function compareLists(
  path: string,
  before: readonly unknown[],
  after: readonly unknown[],
  operations: PatchOperation[],
): void {
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && sameJson(before[start], after[start])) start++
  let rest = 0
  while (rest < shorter - start && sameJson(before.at(-1 - rest), after.at(-1 - rest))) rest++
  const end = shorter - rest
  for (let index = start; index < end; index++) {
    compare(pointerBelow(path, index), before[index], after[index], operations)
  }
  // From the back, so that those that are still to be removed keep their numbers.
  for (let index = before.length - rest - 1; index >= end; index--) {
    operations.push({ op: 'remove', path: pointerBelow(path, index) })
  }
  for (let index = end; index < after.length - rest; index++) {
    operations.push({ op: 'add', path: pointerBelow(path, index), value: after[index] })
  }
}
