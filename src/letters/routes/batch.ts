/**
 * `POST /api/dlq:batch`: many reports at once. Those that can be filed are, in one transaction; each of the others is refused at its place
 * in the list, as a call of its own would be.
 */
import type { Clock } from '../../core/clock.ts'
import { BartlebyError, refuse } from '../../core/errors.ts'
import { type ApiCall, type ApiRequest, onceKeyOf } from '../../http/api-routes.ts'
import { describeCall } from '../../http/describe-api.ts'
import { errorFields } from '../../http/envelope.ts'
import { isObject, type JsonObject, refuseNulls, refuseUnknownFields } from '../../http/json-body.ts'
import type { CaptureResult } from '../intake.ts'
import type { Letters } from '../letters.ts'
import { type FailureReport, type ReportContext, readReport } from '../report.ts'
import { CAPTURED, MOST_REPORTS, REPORT, REPORTS } from './describe.ts'

/** As much as one report may have. */
const BATCH_LIMIT = 10_485_760

export const batchCall = (letters: Letters, clock: Clock): ApiCall => ({
  method: 'POST',
  // Fastify reads one colon as the beginning of a parameter.
  path: '/api/dlq::batch',
  role: 'operator',
  body: 'required',
  bodyLimit: BATCH_LIMIT,
  refusesNulls: true,
  schema: describeCall({
    operationId: 'letters.captureMany',
    tag: 'letters',
    summary:
      'Put up to 1,000 failures on file in one transaction, each as by POST /api/dlq. One that cannot be filed is refused at its place, and the others are filed',
    role: 'operator',
    body: REPORTS,
    data: CAPTURED,
    failures: [409],
    idempotent: true,
  }),
  answer: async (request) => {
    const context = {
      engines: letters.engines,
      now: clock.now(),
      correlationId: request.correlationId,
      actor: request.caller.name,
    }
    const read = listOf(request).map((fields) => readOrRefuse(fields, context))
    const reports = read.flatMap((one) => (one instanceof BartlebyError ? [] : one))
    const { status, body } = await letters.captureOnce(onceKeyOf(request), reports, (results) => ({
      status: 200,
      body: answerOf(read, results),
    }))
    return { status, data: body }
  },
})

function listOf({ body: { fields } }: ApiRequest): readonly unknown[] {
  refuseUnknownFields(fields, Object.keys(REPORTS.fields))
  const { letters } = fields
  const size = Array.isArray(letters) ? letters.length : 0
  if (!Array.isArray(letters) || size === 0 || size > MOST_REPORTS)
    throw refuse('letters', `give a list of 1 to ${MOST_REPORTS} reports${size > 0 ? `, not ${size}` : ''}`)
  return letters
}

function readOrRefuse(fields: unknown, context: ReportContext): FailureReport | BartlebyError {
  try {
    if (!isObject(fields)) throw refuse('letters', 'it holds something else than an object')
    refuseNulls(REPORT_SCHEMA, fields)
    return readReport(fields, context)
  } catch (error) {
    if (error instanceof BartlebyError) return error
    throw error
  }
}

const REPORT_SCHEMA: JsonObject = { properties: REPORT.fields, required: REPORT.required }

function answerOf(read: readonly (FailureReport | BartlebyError)[], captured: readonly CaptureResult[]) {
  const next = captured.values()
  const results = read.map((one) => {
    if (one instanceof BartlebyError) return { outcome: 'refused', error: errorFields(one) }
    const result = next.next().value
    if (result === undefined) throw new Error('a report has no letter')
    const { engine, rowKey, sourceId, status } = result.letter
    return { outcome: result.created ? 'created' : 'known', letter: { engine, rowKey, sourceId, status } }
  })
  const count = (outcome: string) => results.filter((result) => result.outcome === outcome).length
  return { created: count('created'), known: count('known'), refused: count('refused'), results }
}
