/**
 * JSON as it was written. Values are stretches of the text: numbers keep every digit, members their order, and duplicates are all
 * there. Nothing is read before it is asked for, so that a large payload costs what is shown of it. Without recursion.
 */

import { skipSpace, stringEnd, wordEnd } from '../../../src/core/json-scan.ts'

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

/** A value: where it begins in the text, and where it is over. */
export interface JsonSpan {
  readonly kind: JsonKind
  readonly start: number
  readonly end: number
}

/** A member of an object, or an element of an array, which has no name. */
export interface JsonChild {
  readonly name: string | null
  readonly index: number
  readonly span: JsonSpan
}

/** Where a list of children goes on. */
export interface JsonPlace {
  readonly at: number
  readonly index: number
}

export interface JsonChildren {
  readonly children: readonly JsonChild[]
  /** null: these were the last. */
  readonly next: JsonPlace | null
}

/** Whether the text is JSON. What comes out of the reading is thrown away: it may have lost digits. */
export function isJson(text: string): boolean {
  return jsonProblem(text) === null
}

/** What is wrong with the text as JSON, as the browser says it; null when nothing is. */
export function jsonProblem(text: string): string | null {
  try {
    JSON.parse(text)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** The value that the whole text is; null when it is no JSON. */
export function jsonRoot(text: string): JsonSpan | null {
  return isJson(text) ? spanAt(text, skipSpace(text, 0)) : null
}

/** Some children of an object or array of a text that is JSON, from a place on. */
export function childrenOf(
  text: string,
  parent: JsonSpan,
  limit: number,
  from: JsonPlace = { at: parent.start + 1, index: 0 },
): JsonChildren {
  const children: JsonChild[] = []
  if (parent.kind !== 'object' && parent.kind !== 'array') return { children, next: null }
  let { at, index } = from
  for (;;) {
    at = skipSpace(text, at)
    if (text[at] === ',') at = skipSpace(text, at + 1)
    if (at >= parent.end - 1) return { children, next: null }
    if (children.length === limit) return { children, next: { at, index } }
    let name: string | null = null
    if (parent.kind === 'object') {
      const nameEnd = stringEnd(text, at)
      name = stringOf(text, { kind: 'string', start: at, end: nameEnd })
      at = skipSpace(text, text.indexOf(':', nameEnd) + 1)
    }
    const span = spanAt(text, at)
    children.push({ name, index, span })
    at = span.end
    index++
  }
}

/** The characters that a string of the text stands for. */
export const stringOf = (text: string, { start, end }: JsonSpan): string =>
  String(JSON.parse(text.slice(start, end)))

/** The same JSON without white space between its values; null when it is no JSON. Tells whether two differ in more than that. */
export function compact(text: string): string | null {
  if (!isJson(text)) return null
  const parts: string[] = []
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const end =
      text[at] === '"' ? stringEnd(text, at) : '{}[],:'.includes(text.charAt(at)) ? at + 1 : wordEnd(text, at)
    parts.push(text.slice(at, end))
    at = end
  }
  return parts.join('')
}

const KINDS: Readonly<Record<string, JsonKind>> = {
  '{': 'object',
  '[': 'array',
  '"': 'string',
  t: 'boolean',
  f: 'boolean',
  n: 'null',
}

function spanAt(text: string, start: number): JsonSpan {
  const kind = KINDS[text.charAt(start)] ?? 'number'
  if (kind === 'string') return { kind, start, end: stringEnd(text, start) }
  if (kind !== 'object' && kind !== 'array') return { kind, start, end: wordEnd(text, start) }
  let depth = 0
  let at = start
  do {
    const character = text[at]
    if (character === '"') {
      at = stringEnd(text, at)
      continue
    }
    if (character === '{' || character === '[') depth++
    if (character === '}' || character === ']') depth--
    at++
  } while (depth > 0 && at < text.length)
  return { kind, start, end: at }
}
