/** Changes the text of a document so that it means another value: what is the same in both keeps its bytes. */
import { membersOf, parseExactly, sameJson } from './exact.ts'
import { JsonText, withValue } from './text.ts'

/** The text with what differs written anew. `after` is exact, and neither of them is nested without end. */
export function rewriteText(text: string, after: unknown): string {
  const root = JsonText.of(text)
  return withValue(text, change(() => root, parseExactly(text), after) ?? root)
}

/** Texts are looked into where they change, and not before. */
type Found = () => JsonText | undefined

/** Changes a text within, or gives another for its place; null: it stays in it. */
function change(text: Found, before: unknown, after: unknown): JsonText | null {
  if (Array.isArray(before) && Array.isArray(after)) return changeList(text, before, after)
  const old = membersOf(before)
  const now = membersOf(after)
  if (old !== null && now !== null) return changeObject(text, old, now)
  return sameJson(before, after) ? null : JsonText.from(after)
}

function changePart(text: Found, step: string | number, before: unknown, after: unknown): void {
  const replaced = change(() => text()?.at(step), before, after)
  if (replaced !== null) text()?.set(step, replaced)
}

type Members = Readonly<Record<string, unknown>>

function changeObject(text: Found, before: Members, after: Members): null {
  for (const name of Object.keys(before)) {
    if (Object.hasOwn(after, name)) changePart(text, name, before[name], after[name])
    else text()?.remove(name)
  }
  for (const name of Object.keys(after)) {
    if (!Object.hasOwn(before, name)) text()?.set(name, JsonText.from(after[name]))
  }
  return null
}

/**
 * What is the same at both ends stays. Between these, elements are compared one by one, and what is left over is removed or added:
 * not the fewest changes, but as many steps as there are elements.
 */
function changeList(text: Found, before: readonly unknown[], after: readonly unknown[]): null {
  const shorter = Math.min(before.length, after.length)
  let start = 0
  let rest = 0
  // Lists of one length are compared one by one in any case.
  if (before.length !== after.length) {
    while (start < shorter && sameJson(before[start], after[start])) start++
    while (rest < shorter - start && sameJson(before.at(-1 - rest), after.at(-1 - rest))) rest++
  }
  const end = shorter - rest
  for (let index = start; index < end; index++) changePart(text, index, before[index], after[index])
  if (before.length !== after.length) {
    const added = after.slice(end, after.length - rest).map(JsonText.from)
    text()?.replaceElements(end, before.length - rest - end, added)
  }
  return null
}
