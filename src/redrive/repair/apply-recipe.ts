/** Applies a recipe to one letter: payload and headers in, changes or a reason out. */
import { isUtf8 } from 'node:buffer'
import { storedText } from '../../core/content.ts'
import { type PatchOperation, patchText } from '../../core/json/patch.ts'
import { showPointer } from '../../core/json/pointer.ts'
import { isJson } from '../../core/json/tokens.ts'
import { type HeaderEdit, ITEM_HEADERS, type ItemHeader } from '../../letters/letter.ts'
import { mappedText } from './mapping.ts'
import type { HeaderRules, Recipe } from './recipe.ts'
import { MOST_PAYLOAD_BYTES, TOO_LARGE } from './repair-bounds.ts'

export interface LetterContent extends Readonly<Record<ItemHeader, string>> {
  readonly payload: Uint8Array
}

export interface Repaired {
  /** null: unchanged. */
  readonly payload: Uint8Array | null
  /** Only what changed. */
  readonly headers: HeaderEdit
}

export type RepairResult =
  | { readonly ok: true; readonly repaired: Repaired }
  | { readonly ok: false; readonly reason: string }

export type TextResult =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly reason: string }

/** Bounds the size; time and memory are for the caller to bound. */
export async function applyRecipe(recipe: Recipe, letter: LetterContent): Promise<RepairResult> {
  const { patch, mapping } = recipe
  const headers = recipe.headers === null ? {} : changedHeaders(recipe.headers, letter)
  if (patch === null && mapping === null) return { ok: true, repaired: { payload: null, headers } }
  const read = payloadText(letter.payload)
  if (!read.ok) return read
  const result = patch === null ? await mappedText(mapping ?? '', read.text) : patched(patch, read.text)
  if (!result.ok) return result
  if (result.text === read.text) return { ok: true, repaired: { payload: null, headers } }
  const payload = new TextEncoder().encode(result.text)
  if (payload.length > MOST_PAYLOAD_BYTES) return { ok: false, reason: TOO_LARGE }
  return { ok: true, repaired: { payload, headers } }
}

/** Only JSON in UTF-8 of a bounded size can be repaired. */
function payloadText(payload: Uint8Array): TextResult {
  const refused = (reason: string): TextResult => ({ ok: false, reason: `the payload is ${reason}` })
  if (payload.length > MOST_PAYLOAD_BYTES) return refused('larger than 16 MiB')
  if (payload.length === 0) return refused('empty, and no JSON')
  if (!isUtf8(payload)) return refused('no UTF-8, and no JSON')
  // Keeps a byte order mark, which is no JSON.
  const text = storedText(payload)
  return isJson(text) ? { ok: true, text } : refused('no JSON')
}

function patched(patch: readonly PatchOperation[], text: string): TextResult {
  const result = patchText(text, patch, MOST_PAYLOAD_BYTES)
  return result.ok ? result : { ok: false, reason: `${naming(patch, result.index)}: ${result.reason}` }
}

/** An operation for its author: `patch[2] (replace /order/id)`. */
function naming(patch: readonly PatchOperation[], index: number): string {
  const operation = patch[index]
  const name = operation === undefined ? '' : ` (${operation.op} ${showPointer(operation.path)})`
  return `patch[${index}]${name}`
}

/** Headers that change; removed ones become empty. */
function changedHeaders(rules: HeaderRules, headers: Readonly<Record<ItemHeader, string>>): HeaderEdit {
  const changed: Partial<Record<ItemHeader, string>> = {}
  for (const name of ITEM_HEADERS) {
    const value = rules.remove.includes(name) ? '' : rules.set[name]
    if (value !== undefined && value !== headers[name]) changed[name] = value
  }
  return changed
}
