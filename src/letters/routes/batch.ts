/** `POST /api/dlq:batch`: many reports, filed in one transaction. Each that cannot be filed is refused at its place in the list. */

import { type ApiCall, type ApiRequest, onceKeyOf } from '../../api/calls.ts'
import { errorFields } from '../../api/envelope.ts'
import { isObject, refuseNulls, refuseUnknownFields } from '../../api/json-body.ts'
import type { Clock } from '../../core/clock.ts'
import { BartlebyError, refuse } from '../../core/errors.ts'
import { sourceName } from '../../core/source-id.ts'
import type { Letters } from '../letters.ts'
import { type CaptureResult, MOST_OF_SOURCE_ID } from '../reports/intake.ts'
import { type FailureReport, isSameFailure, type ReportContext, readReport } from '../reports/report.ts'
import {
  CAPTURED,
  type CapturedLetters,
  type CaptureOutcome,
  MOST_REPORTS,
  REPORT,
  REPORTS,
} from '../shapes.ts'

/** A report carries a whole message. */
export const REPORT_BYTES = 10_485_760

export const batchCall = (letters: Letters, clock: Clock): ApiCall => ({
  method: 'POST',
  // Fastify takes one colon for a parameter.
  path: '/api/dlq::batch',
  role: 'operator',
  // As much as one report.
  bodyLimit: REPORT_BYTES,
  refusesNullsItself: true,
  operationId: 'letters.captureMany',
  tag: 'letters',
  summary:
    'Put up to 1,000 failures on file in one transaction, each as by POST /api/dlq, at most 20 different ones of a sourceId. One that cannot be filed is refused at its place, and the others are filed',
  body: REPORTS,
  data: CAPTURED,
  idempotent: true,
  answer: async (request) => {
    const context = {
      engines: letters.engines,
      now: clock.now(),
      correlationId: request.correlationId,
      actor: request.caller.name,
    }
    const read = withoutCrowds(listOf(request).map((fields) => readOrRefuse(fields, context)))
    const reports = read.flatMap((one) => (one instanceof BartlebyError ? [] : one))
    const { status, body } = await letters.captureOnce(onceKeyOf(request), reports, (results) => ({
      status: 200,
      body: outcomesOf(read, results),
    }))
    return { status, data: body }
  },
})

function listOf({ body: { fields } }: ApiRequest): readonly unknown[] {
  refuseUnknownFields(fields, Object.keys(REPORTS.properties))
  const { letters } = fields
  const size = Array.isArray(letters) ? letters.length : 0
  if (!Array.isArray(letters) || size === 0 || size > MOST_REPORTS)
    throw refuse('letters', `give a list of 1 to ${MOST_REPORTS} reports${size > 0 ? `, not ${size}` : ''}`)
  return letters
}

type ReadOrRefused = FailureReport | BartlebyError

function readOrRefuse(fields: unknown, context: ReportContext): ReadOrRefused {
  try {
    if (!isObject(fields)) throw refuse('letters', 'it holds something else than an object')
    refuseNulls(REPORT, fields)
    return readReport(fields, context)
  } catch (error) {
    if (error instanceof BartlebyError) return error
    throw error
  }
}

/** Failures of one source id are filed one by one, and everybody would wait for a thousand. */
function withoutCrowds(read: readonly ReadOrRefused[]): readonly ReadOrRefused[] {
  const different = new Map<string, FailureReport[]>()
  return read.map((one) => {
    if (one instanceof BartlebyError) return one
    const before = different.get(sourceName(one)) ?? []
    if (before.some((other) => isSameFailure(other, one))) return one
    if (before.length === MOST_OF_SOURCE_ID)
      return refuse(
        'sourceId',
        `it has ${MOST_OF_SOURCE_ID} other failures in this batch, which is the most; send this one in another`,
      )
    different.set(sourceName(one), [...before, one])
    return one
  })
}

function outcomesOf(read: readonly ReadOrRefused[], captured: readonly CaptureResult[]): CapturedLetters {
  const next = captured.values()
  const results = read.map((one): CaptureOutcome => {
    if (one instanceof BartlebyError) return { outcome: 'refused', error: errorFields(one) }
    const result = next.next().value
    if (result === undefined) throw new Error('a report has no letter')
    const { engine, rowKey, sourceId, status } = result.letter
    return { outcome: result.created ? 'created' : 'known', letter: { engine, rowKey, sourceId, status } }
  })
  const count = (outcome: string) => results.filter((result) => result.outcome === outcome).length
  return { created: count('created'), known: count('known'), refused: count('refused'), results }
}
