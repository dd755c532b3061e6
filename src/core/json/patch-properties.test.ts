import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonTexts, pathsIn, valueAt } from '../../../test/world/json-texts.ts'
import { membersOf, parseExactly, sameJson } from './exact.ts'
import { type PatchOperation, patchText } from './patch.ts'
import { pointerBelow, stepsOf } from './pointer.ts'
import { isJson } from './tokens.ts'

const RUNS = { numRuns: 300 }

function patched(text: string, operations: readonly PatchOperation[]): string {
  const result = patchText(text, operations, 1_000_000)
  if (!result.ok) throw new Error(`refused: ${result.reason}`)
  return result.text
}

type Edit =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }

/** The same operation, done with values. */
function byValue(document: unknown, edit: Edit): unknown {
  const [step, ...rest] = stepsOf(edit.path)
  const value = edit.op === 'remove' ? undefined : edit.value
  if (step === undefined) return value
  const deeper = (part: unknown) => byValue(part, { ...edit, path: rest.reduce(pointerBelow, '') })
  if (Array.isArray(document)) {
    const index = step === '-' ? document.length : Number(step)
    if (rest.length > 0) return document.with(index, deeper(document[index]))
    if (edit.op === 'remove') return document.toSpliced(index, 1)
    return document.toSpliced(index, edit.op === 'add' ? 0 : 1, value)
  }
  const members = new Map(Object.entries(membersOf(document) ?? {}))
  if (rest.length > 0) members.set(step, deeper(members.get(step)))
  else if (edit.op === 'remove') members.delete(step)
  else members.set(step, value)
  return Object.fromEntries(members)
}

const wishes = fc.record({
  op: fc.constantFrom('add', 'replace', 'remove'),
  pick: fc.nat(),
  name: fc.constantFrom('a', 'new', '', '/~', '__proto__'),
  value: fc.jsonValue({ maxDepth: 2 }).map((value) => parseExactly(JSON.stringify(value))),
})

/** An operation that can be done on this document. */
function editOf(
  { op, pick, name, value }: typeof wishes extends fc.Arbitrary<infer Wish> ? Wish : never,
  document: unknown,
): Edit {
  const paths = pathsIn(document)
  const path = paths[pick % paths.length] ?? ''
  const target = valueAt(document, path)
  if (op === 'add' && Array.isArray(target)) return { op, path: pointerBelow(path, '-'), value }
  if (op === 'add' && membersOf(target) !== null) return { op, path: pointerBelow(path, name), value }
  if (op === 'remove') return path === '' ? { op: 'replace', path, value } : { op, path }
  return { op, path, value }
}

/** How many characters two texts share, at their beginnings and ends together. */
function shared(a: string, b: string): number {
  const most = Math.min(a.length, b.length)
  let start = 0
  while (start < most && a[start] === b[start]) start++
  let end = 0
  while (end < most - start && a.at(-1 - end) === b.at(-1 - end)) end++
  return start + end
}

/** Whether `now` is `text` with `old` taken out somewhere and `value` put in its place, and nothing else. */
function isSwap(text: string, now: string, old: unknown, value: string): boolean {
  for (let at = now.indexOf(value); at >= 0; at = now.indexOf(value, at + 1)) {
    const behind = now.length - at - value.length
    const middle = text.slice(at, text.length - behind)
    if (!text.startsWith(now.slice(0, at)) || !text.endsWith(now.slice(at + value.length))) continue
    if (isJson(middle) && sameJson(parseExactly(middle), old)) return true
  }
  return false
}

describe('any patch of any document', () => {
  it('means what its operations mean, one after the other', () => {
    fc.assert(
      fc.property(jsonTexts(), fc.array(wishes, { minLength: 1, maxLength: 5 }), (text, wished) => {
        let value = parseExactly(text)
        const edits: Edit[] = []
        for (const wish of wished) {
          const edit = editOf(wish, value)
          edits.push(edit)
          value = byValue(value, edit)
        }
        expect(sameJson(parseExactly(patched(text, edits)), value)).toBe(true)
      }),
      RUNS,
    )
  })

  it('is one cut into the text: everything before it and behind it stays as it was written', () => {
    fc.assert(
      fc.property(jsonTexts({ duplicates: false }), wishes, (text, wish) => {
        const document = parseExactly(text)
        const edit = editOf(wish, document)
        const now = patched(text, [edit])
        if (edit.op === 'remove') {
          expect(shared(text, now)).toBe(now.length)
          return
        }
        const parent =
          edit.path === '' ? null : valueAt(document, edit.path.slice(0, edit.path.lastIndexOf('/')))
        const old = valueAt(document, edit.path)
        const isNew = old === undefined || (edit.op === 'add' && Array.isArray(parent))
        if (!isNew) expect(isSwap(text, now, old, JSON.stringify(edit.value))).toBe(true)
        // White space where nothing was inside goes with the first that comes in.
        else if (Object.keys(Object(parent)).length > 0) expect(shared(text, now)).toBe(text.length)
      }),
      RUNS,
    )
  })

  it('leaves a document that is only looked at as it is', () => {
    fc.assert(
      fc.property(jsonTexts(), (text) => {
        const value = parseExactly(text)
        const tests = pathsIn(value).map(
          (path) => ({ op: 'test', path, value: valueAt(value, path) }) as const,
        )
        expect(patched(text, tests)).toBe(text)
      }),
      RUNS,
    )
  })
})
