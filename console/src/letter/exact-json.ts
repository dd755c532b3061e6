/**
 * JSON as it was written. Values are stretches of the text: numbers keep every digit, members their order, and duplicates are all
 * there. Nothing is read before it is asked for, so that a large payload costs what is shown of it. Without recursion.
 */

import { isClosing, isJson, isOpening, nameAt, skipSpace, tokenEnd } from '../../../src/core/json/tokens.ts'

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
    const member = parent.kind === 'object' ? nameAt(text, at) : null
    const span = spanAt(text, member?.valueStart ?? at)
    children.push({ name: member?.name ?? null, index, span })
    at = span.end
    index++
  }
}

/** The same JSON without white space between its values; null when it is no JSON. Tells whether two differ in more than that. */
export function compact(text: string): string | null {
  if (!isJson(text)) return null
  const parts: string[] = []
  for (let at = skipSpace(text, 0), end = 0; at < text.length; at = skipSpace(text, end)) {
    end = tokenEnd(text, at)
    parts.push(text.slice(at, end))
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
  let depth = 0
  let end = start
  do {
    const at = skipSpace(text, end)
    const code = text.charCodeAt(at)
    if (isOpening(code)) depth++
    else if (isClosing(code)) depth--
    end = tokenEnd(text, at)
  } while (depth > 0 && end < text.length)
  return { kind, start, end }
}
