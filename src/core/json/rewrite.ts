/** Changes a text so that it means another value: equal parts keep their bytes. */
import { membersOf, parseExactly, sameJson } from './exact.ts'
import { JsonText, withValue } from './text.ts'

/** `after` is exact; neither is nested without end. */
export function rewriteText(text: string, after: unknown): string {
  const root = JsonText.of(text)
  return withValue(text, change(() => root, parseExactly(text), after) ?? root)
}

/** Texts are parsed only where they change. */
type Found = () => JsonText | undefined

/** Changes a text within, or returns a replacement; null: it stays. */
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

/** Equal ends stay; between them elements are compared one by one. Not the fewest changes, but linear. */
function changeList(text: Found, before: readonly unknown[], after: readonly unknown[]): null {
  const shorter = Math.min(before.length, after.length)
  let start = 0
  let rest = 0
  // Lists of one length are compared one by one anyway.
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
