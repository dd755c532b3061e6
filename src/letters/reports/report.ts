/** Failures reported as JSON, read field by field: whatever cannot be kept as given is refused by name. Only error texts are cut instead. */

import { randomUUID } from 'node:crypto'
import { given, type JsonObject } from '../../api/json-body.ts'
import type { Instant } from '../../core/clock.ts'
import { refuse } from '../../core/errors.ts'
import { isEngineSourceId, UNNAMED_INSTANCE } from '../../core/source-id.ts'
import type { ErrorDescription } from '../../core/thrown.ts'
import { formatMicros } from '../../core/timestamp.ts'
import type { KnownEngines } from '../../history/entry.ts'
import type { Session } from '../../store/database.ts'
import { kindOf, type SourceName, sourceKinds, sourceNames, sourceOfReports } from '../kinds.ts'
import { OFFICE } from '../letter.ts'
import { REPORT, type Report } from '../shapes.ts'
import { requiredPayload } from './payload.ts'

/** Reported over HTTP, or by a source that keeps no items here. `report-again.ts` tells repetitions from new failures. */
export interface FailureReport extends ErrorDescription {
  readonly source: SourceName
  readonly engine: string
  readonly instanceId: string
  readonly correlationId: string
  readonly sourceId: string
  readonly originalQueue: string | null
  readonly encoding: string
  readonly kind: string
  readonly reference: string
  readonly headers: Uint8Array | null
  readonly payload: Uint8Array
  /** As the reporter counts them. */
  readonly dequeueCount: number
  /** null: the last one is the first. */
  readonly firstFailureAt: Instant | null
  /** null: the time of receipt stands for it. */
  readonly lastFailureAt: Instant | null
  readonly failedBy: string | null
  readonly actor: string
}

/** Whether two reports about one source id are one failure. */
export const isSameFailure = (a: FailureReport, b: FailureReport): boolean =>
  a.lastFailureAt === b.lastFailureAt &&
  (a.lastFailureAt !== null || a.dequeueCount === b.dequeueCount) &&
  a.errorMessage === b.errorMessage &&
  a.errorClass === b.errorClass &&
  a.errorStack === b.errorStack

export interface EngineNames extends Pick<KnownEngines, 'check' | 'checkKnown'> {
  definitionOf(name: string): { readonly queue: string | null }
  /** The engine's own queue, also if it is not defined. */
  queueOf(name: string, session?: Session): Promise<string | null>
}

export interface ReportContext {
  readonly engines: EngineNames
  readonly now: Instant
  /** Of the request; the report may have its own. */
  readonly correlationId: string
  readonly actor: string
}

export function readReport(fields: JsonObject, context: ReportContext): FailureReport {
  const { text, integer, instant } = given(REPORT, fields)
  const engine = text('engine')
  checkEngine(engine, context.engines)
  const sourceId = text('sourceId')
  if (isEngineSourceId(sourceId))
    throw refuse(
      'sourceId',
      "'item-' and the id of an item name what died in an engine's queue; give another",
    )
  const payload = requiredPayload(fields, 'originalMessage', 'originalMessageEncoding')
  const errorMessage = errorText(fields, 'errorMessage')
  if (errorMessage === null) throw refuse('errorMessage', 'it is missing')
  const lastFailureAt = instant('lastFailureAtUtc')
  const firstFailureAt = instant('firstFailureAtUtc')
  if (firstFailureAt !== null && firstFailureAt > (lastFailureAt ?? context.now))
    throw refuse('firstFailureAtUtc', 'it is later than lastFailureAtUtc')
  return {
    source: sourceOfReports(),
    engine,
    instanceId: text('instanceId') ?? UNNAMED_INSTANCE,
    correlationId: text('correlationId') ?? context.correlationId,
    sourceId,
    originalQueue: text('originalQueue') ?? context.engines.definitionOf(engine).queue,
    encoding: '',
    kind: '',
    reference: '',
    headers: readHeaders(fields.headers),
    payload,
    dequeueCount: integer('dequeueCount') ?? 1,
    firstFailureAt,
    lastFailureAt,
    errorClass: errorText(fields, 'errorClass') ?? '',
    errorMessage,
    errorStack: errorText(fields, 'errorStack'),
    failedBy: context.actor,
    actor: context.actor,
  }
}

/** Bartleby's own engines are refused: a report as `queues` could take an item's source id, and the item would find no letter to become. */
function checkEngine(engine: string, engines: EngineNames): void {
  if (engine === OFFICE || (sourceNames().includes(engine) && kindOf(engine).takesReports !== true)) {
    const open = sourceKinds().flatMap(({ name, takesReports }) => (takesReports ? `'${name}'` : []))
    throw refuse('engine', `'${engine}' is Bartleby's own; report to another engine or ${open.join(', ')}`)
  }
  engines.check(engine)
}

/** Not cut: the capture does that. */
function errorText(fields: JsonObject, name: string): string | null {
  const value = fields[name]
  if (value === undefined || value === null) return null
  if (typeof value !== 'string') throw refuse(name, 'give a text')
  return value
}

function readHeaders(value: unknown): Uint8Array | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'object' || Array.isArray(value)) throw refuse('headers', 'give an object of texts')
  for (const [name, text] of Object.entries(value)) {
    if (typeof text !== 'string') throw refuse('headers', `'${name.toWellFormed()}' is no text`)
  }
  return Buffer.from(JSON.stringify(value), 'utf8')
}

/** An instant, a date, or a text as on the wire. */
export type ReportedTime = Instant | Date | string

/** A failure reported in process: the fields of `POST /api/dlq` with the same defaults, limits and refusals. */
export interface ReportedFailure
  extends Omit<
    Report,
    'originalMessage' | 'originalMessageEncoding' | 'firstFailureAtUtc' | 'lastFailureAtUtc'
  > {
  /** Bytes as they are, texts as UTF-8. */
  readonly originalMessage: Uint8Array | string
  readonly firstFailureAtUtc?: ReportedTime
  /** Left out: now. */
  readonly lastFailureAtUtc?: ReportedTime
}

const ACTOR = 'library'

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
