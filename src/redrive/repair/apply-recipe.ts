/** What a recipe makes of one letter: a payload and headers in, what changes out, or why it cannot be done. */
import type { HeaderEdit, ItemHeader } from '../../letters/letter.ts'
import { changedHeaders } from './header-rules.ts'
import { showPointer } from './json-pointer.ts'
import { mappedText } from './mapping.ts'
import { payloadText } from './payload-text.ts'
import type { PatchOperation, Recipe } from './recipe.ts'
import { MOST_PAYLOAD_BYTES, TOO_LARGE } from './repair-bounds.ts'
import { patchText } from './text-patch.ts'

/** A letter before its repair. */
export interface LetterContent extends Readonly<Record<ItemHeader, string>> {
  readonly payload: Uint8Array
}

/** What becomes of it. */
export interface Repaired {
  /** null: unchanged. */
  readonly payload: Uint8Array | null
  /** Only what changed. */
  readonly headers: HeaderEdit
}

/** What becomes of it, or why it cannot be repaired, in plain words. */
export type RepairResult =
  | { readonly ok: true; readonly repaired: Repaired }
  | { readonly ok: false; readonly reason: string }

/** The new text, or why there is none. */
type TextResult =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly reason: string }

/** Applies a recipe. Bounded in size; time and memory are for whoever calls it to bound. */
export async function applyRecipe(recipe: Recipe, letter: LetterContent): Promise<RepairResult> {
  const headers = recipe.headers === null ? {} : changedHeaders(recipe.headers, letter)
  if (recipe.patch === null && recipe.mapping === null)
    return { ok: true, repaired: { payload: null, headers } }
  const read = payloadText(letter.payload)
  if (!read.ok) return read
  const result = await changedText(recipe, read.text)
  if (!result.ok) return result
  if (result.text === read.text) return { ok: true, repaired: { payload: null, headers } }
  const payload = new TextEncoder().encode(result.text)
  if (payload.length > MOST_PAYLOAD_BYTES) return { ok: false, reason: TOO_LARGE }
  return { ok: true, repaired: { payload, headers } }
}

async function changedText({ patch, mapping }: Recipe, text: string): Promise<TextResult> {
  if (patch !== null) return patched(patch, text)
  return mapping === null ? { ok: true, text } : mappedText(mapping, text)
}

function patched(patch: readonly PatchOperation[], text: string): TextResult {
  const result = patchText(text, patch, MOST_PAYLOAD_BYTES)
  return result.ok ? result : { ok: false, reason: `${naming(patch, result.index)}: ${result.reason}` }
}

/** An operation as its author finds it again: `patch[2] (replace /order/id)`. */
function naming(patch: readonly PatchOperation[], index: number): string {
  const operation = patch[index]
  const said = operation === undefined ? '' : ` (${operation.op} ${showPointer(operation.path)})`
  return `patch[${index}]${said}`
}
