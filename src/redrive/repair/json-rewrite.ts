/** Changes the text of a document so that it means another value: what is the same in both keeps its bytes. */
import { membersOf, parseExactly, sameJson } from './exact-json.ts'
import { JsonText, withoutSpace } from './json-text.ts'

/** The text with what differs written anew. `after` is exact, and neither of them is nested without end. */
export function rewriteText(text: string, after: unknown): string {
  const { before, inner, behind } = withoutSpace(text)
  const root = JsonText.of(inner)
  const replaced = change(() => root, parseExactly(text), after)
  return before + (replaced ?? root).toString() + behind
}

/** Texts are looked into where they change, and not before. */
type Found = () => JsonText

/** Changes a text within, or gives another for its place; null: it stays in it. */
function change(text: Found, before: unknown, after: unknown): JsonText | null {
  if (Array.isArray(before) && Array.isArray(after)) return changeList(text, before, after)
  const old = membersOf(before)
  const now = membersOf(after)
  if (old !== null && now !== null) return changeObject(text, old, now)
  return sameJson(before, after) ? null : textOf(after)
}

type Members = Readonly<Record<string, unknown>>

function changeObject(text: Found, before: Members, after: Members): null {
  for (const name of Object.keys(before)) {
    if (!Object.hasOwn(after, name)) {
      text().removeMember(name)
      continue
    }
    const replaced = change(() => there(text().member(name)), before[name], after[name])
    if (replaced !== null) text().setMember(name, replaced)
  }
  for (const name of Object.keys(after)) {
    if (!Object.hasOwn(before, name)) text().setMember(name, textOf(after[name]))
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
  for (let index = start; index < end; index++) {
    const replaced = change(() => there(text().element(index)), before[index], after[index])
    if (replaced !== null) text().setElement(index, replaced)
  }
  if (before.length !== after.length) {
    text().replaceElements(end, before.length - rest - end, after.slice(end, after.length - rest).map(textOf))
  }
  return null
}

const textOf = (value: unknown): JsonText => JsonText.of(JSON.stringify(value))

function there(text: JsonText | undefined): JsonText {
  if (text === undefined) throw new Error('a document has not what its text has')
  return text
}
