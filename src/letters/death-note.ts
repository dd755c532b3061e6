/** What is known about a death, in a form that fits the store: cut, cleaned, with its drawer and its history. */
import type { Instant } from '../core/clock.ts'
import { signatureOf } from '../core/signature.ts'
import type { HistoryStatus, SeriesNumbers } from '../history/record.ts'
import type { Drawers } from './drawers.ts'
import type { DeathReason, SourceName } from './letter.ts'
import type { OfficeWork } from './work.ts'

/** The registers that every capture looks numbers up in. */
export interface Registers {
  readonly drawers: Drawers
  readonly series: SeriesNumbers
}

/** Why something died and where; the same for all that die of the same. */
export interface Death {
  readonly source: SourceName
  readonly engine: string
  /** The queue it came from; null when there is none. */
  readonly queue: string | null
  /** null: it has none, its source id stands for it. */
  readonly instanceId: string | null
  readonly correlationId: string | null
  readonly reason: DeathReason
  readonly errorClass: string
  readonly errorMessage: string
  readonly errorStack: string | null
  readonly failedBy: string | null
  /** The deliveries that its report named; left out: nobody reported it. */
  readonly reportedCount?: number
  /** The history row that records the death. */
  readonly record: {
    readonly operation: string
    readonly status: HistoryStatus
    readonly durationMs: number
    readonly actor: string | null
    readonly input: Uint8Array | null
    readonly output: Uint8Array | null
  }
}

/** A death with its numbers, ready to be written. */
export interface DeathNote extends Death {
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

/** Finds the drawer and the series of a death and cleans its texts. */
export async function noteDeath(
  work: OfficeWork,
  { drawers, series }: Registers,
  death: Death,
  times: {
    readonly capturedAt: Instant
    readonly firstFailureAt?: Instant
    readonly lastFailureAt?: Instant
  },
): Promise<DeathNote> {
  const { source, engine, queue, record } = death
  const lastFailureAt = times.lastFailureAt ?? times.capturedAt
  return {
    ...death,
    ...storableError(death),
    drawer: await drawers.numberOf(work, {
      source,
      engine,
      queue: queue ?? '',
      signature: signatureOf(death),
      failedAt: lastFailureAt,
    }),
    series: await series.numberOf(work, engine, record.operation, record.status),
    capturedAt: times.capturedAt,
    firstFailureAt: times.firstFailureAt ?? lastFailureAt,
    lastFailureAt,
  }
}

/** What is said of an error. */
export type ErrorTexts = Pick<Death, 'errorClass' | 'errorMessage' | 'errorStack'>

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
