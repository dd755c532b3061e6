/** A payload in a text field, and back: what comes out is what went in, byte for byte, except for what was edited. */
import type { TextEncoding } from '../../../src/client/bytes.ts'
import { isJson, jsonProblem } from '../../../src/core/json/tokens.ts'
import { type Edit, retryBody } from '../acts/calls.ts'
import { byteSize } from '../time/format.ts'

/** Text fields know one kind of line end; the payload's own is put back. */
export type EditMode =
  | { readonly kind: 'text'; readonly lineEnd: '\n' | '\r\n' }
  | { readonly kind: 'base64'; readonly why: string }

/** The server reads no larger bodies. */
export const MAX_BODY_BYTES = 1_048_576

/** How this payload can be edited. */
export function editModeOf(text: string, encoding: TextEncoding): EditMode {
  if (encoding === 'base64') return { kind: 'base64', why: 'Not UTF-8, so it is edited as base64.' }
  if (!text.includes('\r')) return { kind: 'text', lineEnd: '\n' }
  // Each \r has its \n, and each \n its \r.
  if (!/\r(?!\n)|(?<!\r)\n/.test(text)) return { kind: 'text', lineEnd: '\r\n' }
  return {
    kind: 'base64',
    why: 'Mixed line ends, which a text field cannot keep, so it is edited as base64.',
  }
}

/** What stands in the field at first. `base64` is the payload in that form. */
export const toField = (text: string, base64: () => string, mode: EditMode): string =>
  mode.kind === 'base64' ? base64() : text.replaceAll('\r\n', '\n')

/** What is sent of what stands in the field. */
export function fromField(typed: string, mode: EditMode): Edit {
  if (mode.kind === 'base64') return { payload: typed.replace(/\s/g, ''), payloadEncoding: 'base64' }
  return { payload: typed.replaceAll('\n', mode.lineEnd), payloadEncoding: 'utf8' }
}

export interface EditProblem {
  readonly kind: 'json' | 'form' | 'size'
  readonly says: string
}

export interface Checked {
  readonly mode: EditMode
  /** What it was before: JSON should stay JSON. */
  readonly original: string
  readonly notes: string
}

/** Why what stands in the field should not be sent; null when it may be. `json` may be overruled, the others not. */
export function editProblem(typed: string, { mode, original, notes }: Checked): EditProblem | null {
  const edit = fromField(typed, mode)
  if (mode.kind === 'base64' && !isBase64(edit.payload)) {
    return { kind: 'form', says: 'Not base64 with padding.' }
  }
  if (!edit.payload.isWellFormed()) {
    return { kind: 'form', says: 'Contains a lone surrogate, which cannot be encoded.' }
  }
  const size = new TextEncoder().encode(JSON.stringify(retryBody({ edit, notes }))).length
  if (size > MAX_BODY_BYTES) {
    return {
      kind: 'size',
      says: `With its notes it takes ${byteSize(size)} to send, and the server takes ${byteSize(MAX_BODY_BYTES)} at most.`,
    }
  }
  if (mode.kind === 'text' && isJson(original) && !isJson(typed)) {
    return { kind: 'json', says: `No longer JSON: ${jsonProblem(typed) ?? ''}` }
  }
  return null
}

function isBase64(text: string): boolean {
  try {
    return btoa(atob(text)) === text
  } catch {
    return false
  }
}
