/**
 * A failure that an application in the office's own process reports: the fields of `POST /api/dlq`, under the same
 * names and with the same defaults, limits and refusals.
 */
import { randomUUID } from 'node:crypto'
import type { Instant } from '../core/clock.ts'
import { formatMicros } from '../core/timestamp.ts'
import type { FailureReport } from './report.ts'
import { type EngineNames, readReport } from './report.ts'

/** An instant of the office's clock, a date, or a text as on the wire. */
export type ReportedTime = Instant | Date | string

export interface ReportedFailure {
  readonly engine: string
  /** Yours for this failure: the same one twice is one letter. */
  readonly sourceId: string
  /** Bytes are kept as they are, texts as UTF-8. */
  readonly originalMessage: Uint8Array | string
  readonly errorMessage: string
  readonly errorClass?: string
  readonly errorStack?: string
  /** Left out: `publisher`. */
  readonly instanceId?: string
  /** Left out: the queue of the engine. */
  readonly originalQueue?: string
  /** Left out: 1. */
  readonly dequeueCount?: number
  readonly firstFailureAtUtc?: ReportedTime
  /** Left out: now. */
  readonly lastFailureAtUtc?: ReportedTime
  /** Left out: a new one. */
  readonly correlationId?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Who reports, where nobody else is named. */
const ACTOR = 'library'

/** What the capture needs of it; refuses what is missing, malformed or unknown, by name. */
export function inProcessReport(
  report: ReportedFailure,
  { engines, now }: { readonly engines: EngineNames; readonly now: Instant },
): FailureReport {
  const { originalMessage, firstFailureAtUtc, lastFailureAtUtc, ...others } = report
  const fields = {
    ...others,
    ...(originalMessage instanceof Uint8Array
      ? {
          originalMessage: Buffer.from(originalMessage).toString('base64'),
          originalMessageEncoding: 'base64',
        }
      : { originalMessage }),
    firstFailureAtUtc: timeText(firstFailureAtUtc),
    lastFailureAtUtc: timeText(lastFailureAtUtc),
  }
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
  return readReport(given, { engines, now, correlationId: randomUUID(), actor: ACTOR })
}

function timeText(time: ReportedTime | undefined): string | undefined {
  if (typeof time === 'bigint') return formatMicros(time)
  return time instanceof Date ? time.toISOString() : time
}
