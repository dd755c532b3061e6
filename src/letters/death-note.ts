/** What is known about a death, in a form that fits the store: cut, cleaned, with its drawer and its history. */
import type { Instant } from '../core/clock.ts'
import type { SeriesNumbers } from '../history/record.ts'
import type { Cause } from './bury.ts'
import type { Drawers } from './drawers.ts'

/** The registers that every capture looks numbers up in. */
export interface Registers {
  readonly drawers: Drawers
  readonly series: SeriesNumbers
}

/** What is written about a death, with its numbers. */
export interface DeathNote extends Omit<Cause, 'record'> {
  /** null: it has none, its source id stands for it. */
  readonly instanceId: string | null
  readonly correlationId: string | null
  readonly reportedCount?: number
  readonly record: Omit<Cause['record'], 'captured' | 'reopened'> & { readonly operation: string }
  readonly drawer: number
  readonly series: number
  readonly capturedAt: Instant
  readonly firstFailureAt: Instant
  readonly lastFailureAt: Instant
}

export const MAX_MESSAGE_BYTES = 32_768
const MAX_STACK_BYTES = 65_536
const MAX_CLASS_BYTES = 256
const CUT_MARK = '… [cut]'

/** What is said of an error. */
export type ErrorTexts = Pick<Cause, 'errorClass' | 'errorMessage' | 'errorStack'>

/** The texts of an error as letters keep them. */
export const storableError = ({ errorClass, errorMessage, errorStack }: ErrorTexts): ErrorTexts => ({
  errorClass: storable(errorClass, MAX_CLASS_BYTES),
  errorMessage: storable(errorMessage, MAX_MESSAGE_BYTES),
  errorStack: errorStack === null ? null : storable(errorStack, MAX_STACK_BYTES),
})

/** HTTP allows notes a quarter of this. */
const MAX_SAID_BYTES = 16_384

/** What people say, as both stores take it. */
export function said(text: string): string
export function said(text: string | null): string | null
export function said(text: string | null): string | null {
  return text === null ? null : storable(text, MAX_SAID_BYTES)
}

/**
 * A text of the outside that both stores take: at most `maxBytes` of UTF-8, with a mark where it was cut; without
 * U+0000, which PostgreSQL refuses, and without halves of characters.
 */
export function storable(text: string, maxBytes: number): string {
  // A character takes at most three bytes per UTF-16 unit: what is beyond cannot be needed.
  const cut = text.length > maxBytes ? text.slice(0, maxBytes) : text
  const clean = cut.toWellFormed().replaceAll('\0', '\uFFFD')
  const bytes = Buffer.from(clean, 'utf8')
  if (bytes.length <= maxBytes && cut.length === text.length) return clean
  const room = maxBytes - Buffer.byteLength(CUT_MARK)
  let end = Math.min(room, bytes.length)
  // Not in the middle of a character: continuation bytes are 10xxxxxx.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end).toString('utf8') + CUT_MARK
}
