/** Repairs letters by a recipe before they are sent: a payload and headers in, what changes out, or why it cannot be done. */
import { setImmediate } from 'node:timers/promises'
import { type Log, silentLog } from '../../core/log.ts'
import type { HeaderEdit, SourceName } from '../../letters/letter.ts'
import { isOfQueues } from '../destinations.ts'
import { changedHeaders } from './header-rules.ts'
import { showPointer } from './json-pointer.ts'
import { Mapper } from './mapping.ts'
import { TOO_LONG } from './mapping-runner.ts'
import { MOST_PAYLOAD_BYTES, payloadText, TOO_LARGE } from './payload-text.ts'
import type { PatchOperation, Recipe } from './recipe.ts'
import { patchText } from './text-patch.ts'

/** What a letter is before its repair. */
export interface Repairable {
  readonly source: SourceName
  readonly encoding: string
  readonly kind: string
  readonly reference: string
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

/** Whether a mapping took too long for it. */
export const isTooLong = (result: RepairResult): boolean => !result.ok && result.reason === TOO_LONG

/** Others get their turn after so much work in one go: some milliseconds. */
const LETTERS_IN_ONE_GO = 50
const BYTES_IN_ONE_GO = 262_144

/** The new payload, null for the same one, or why there is none. */
type PayloadResult = { readonly payload: Uint8Array | null } | { readonly reason: string }

const UNCHANGED: PayloadResult = { payload: null }

/** Whoever makes one closes it. */
export class Repairer {
  readonly #mapper: Mapper

  constructor(log: Log = silentLog) {
    this.#mapper = new Mapper(log)
  }

  /**
   * One result for each letter, in their order; fewer, but one at least, when `forMs` are over. Rejects when it is closed meanwhile:
   * nothing is known of the letters then.
   */
  async repair(
    recipe: Recipe,
    letters: readonly Repairable[],
    { forMs = Number.POSITIVE_INFINITY }: { readonly forMs?: number } = {},
  ): Promise<readonly RepairResult[]> {
    const startedMs = performance.now()
    const results: RepairResult[] = []
    let lettersInGo = 0
    let bytesInGo = 0
    for (const letter of letters) {
      if (results.length > 0 && performance.now() - startedMs > forMs) break
      const reason = whyNot(recipe, letter)
      if (reason !== null) {
        results.push({ ok: false, reason })
        continue
      }
      if (++lettersInGo > LETTERS_IN_ONE_GO || bytesInGo > BYTES_IN_ONE_GO) {
        await setImmediate()
        lettersInGo = 0
        bytesInGo = 0
      }
      bytesInGo += letter.payload.length
      const result = await this.#payload(recipe, letter.payload)
      if ('reason' in result) {
        results.push({ ok: false, reason: result.reason })
        continue
      }
      const headers = recipe.headers === null ? {} : changedHeaders(recipe.headers, letter)
      results.push({ ok: true, repaired: { payload: result.payload, headers } })
    }
    return results
  }

  /** Ends what it has started. */
  close(): Promise<void> {
    return this.#mapper.close()
  }

  async #payload({ patch, mapping }: Recipe, payload: Uint8Array): Promise<PayloadResult> {
    if (patch !== null) return patched(patch, payload)
    if (mapping === null) return UNCHANGED
    const outcome = await this.#mapper.map(mapping, payload)
    return outcome.kind === 'too long' ? { reason: TOO_LONG } : outcome
  }
}

/** Why a letter cannot be repaired by a recipe, whatever its payload; null when it can. */
function whyNot(recipe: Recipe, { source }: Repairable): string | null {
  if (source === 'webhooks') {
    return 'letters of webhooks cannot be repaired: each consumer gets what was broadcast'
  }
  if (recipe.headers === null || isOfQueues(source)) return null
  return `letters of ${source} have no headers that a repair could change`
}

function patched(patch: readonly PatchOperation[], payload: Uint8Array): PayloadResult {
  const read = payloadText(payload)
  if (!read.ok) return read
  const result = patchText(read.text, patch, MOST_PAYLOAD_BYTES)
  if (!result.ok) return { reason: `${naming(patch, result.index)}: ${result.reason}` }
  if (result.text === read.text) return UNCHANGED
  const bytes = Buffer.from(result.text)
  return bytes.length > MOST_PAYLOAD_BYTES ? { reason: TOO_LARGE } : { payload: bytes }
}

/** An operation as its author finds it again: `patch[2] (replace /order/id)`. */
function naming(patch: readonly PatchOperation[], index: number): string {
  const operation = patch[index]
  const said = operation === undefined ? '' : ` (${operation.op} ${showPointer(operation.path)})`
  return `patch[${index}]${said}`
}
