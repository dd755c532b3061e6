/** Calls of `/api/dlq`: list, look at, capture, change, retry and expire letters. */

import { requireReach } from '../../api/auth.ts'
import { type ApiAnswer, type ApiCall, type ApiRequest, ok, onceKeyOf } from '../../api/calls.ts'
import { given } from '../../api/json-body.ts'
import { flagOf, limitOf, shorten } from '../../api/query.ts'
import { either, PAGE_QUERY, pageOf } from '../../api/shapes.ts'
import type { Clock } from '../../core/clock.ts'
import { failure } from '../../core/errors.ts'
import type { Answer } from '../../store/idempotency.ts'
import { RUN } from '../../work/shapes.ts'
import type { Retry } from '../letter.ts'
import type { Letters } from '../letters.ts'
import { optionalPayload } from '../reports/payload.ts'
import { readReport } from '../reports/report.ts'
import type { LetterKey } from '../shapes.ts'
import {
  CHANGE,
  EXPIRE,
  EXPIRED,
  FILTER_QUERY,
  LETTER,
  LETTER_DETAIL,
  type LetterStatus,
  PREVIEW,
  RECEIPT,
  REPORT,
  RETRY,
  STATUSES,
  TOTAL,
} from '../shapes.ts'
import type { Change } from '../source.ts'
import { letterDetail, letterFields, outgoingFields } from '../view.ts'
import { batchCall, REPORT_BYTES } from './batch.ts'
import { letterFilterOf } from './parameters.ts'

export const dlqCalls = (letters: Letters, clock: Clock): readonly ApiCall[] => [
  listCall(letters),
  totalCall(letters),
  captureCall(letters, clock),
  batchCall(letters, clock),
  expireCall(letters),
  getCall(letters),
  changeCall(letters),
  retryCall(letters),
]

const listCall = (letters: Letters): ApiCall => ({
  method: 'GET',
  path: '/api/dlq',
  role: 'viewer',
  operationId: 'letters.list',
  tag: 'letters',
  summary: 'Letters, the newest failure first',
  query: { ...FILTER_QUERY, ...PAGE_QUERY },
  data: pageOf(LETTER),
  answer: async ({ query }) => {
    const { items, continuationToken } = await letters.list(letterFilterOf(query), {
      limit: limitOf(query),
      continuationToken: query.get('continuationToken') ?? null,
    })
    return ok({ items: items.map(letterFields), continuationToken })
  },
})

const totalCall = (letters: Letters): ApiCall => ({
  method: 'GET',
  path: '/api/dlq/total',
  role: 'viewer',
  operationId: 'letters.total',
  tag: 'letters',
  summary:
    'How many letters a list has: exactly for source, engine, originalQueue, status, signature and outcome=unconfirmed; with other filters up to 10,000',
  query: FILTER_QUERY,
  data: TOTAL,
  answer: async ({ query }) => ok(await letters.numbers.total(letterFilterOf(query))),
})

const captureCall = (letters: Letters, clock: Clock): ApiCall => ({
  method: 'POST',
  path: '/api/dlq',
  role: 'operator',
  bodyLimit: REPORT_BYTES,
  operationId: 'letters.capture',
  tag: 'letters',
  summary:
    'Put a failure on file. Of a known sourceId, a repetition changes nothing, and a new failure makes its letter pending again; both answer 200',
  body: REPORT,
  data: LETTER,
  statuses: [200, 201],
  failures: [409],
  idempotent: true,
  answer: async (request) => {
    const report = readReport(request.body.fields, {
      engines: letters.engines,
      now: clock.now(),
      correlationId: request.correlationId,
      actor: request.caller.name,
    })
    return answered(
      await letters.captureOnce(onceKeyOf(request), [report], ([result]) => ({
        status: result?.created === true ? 201 : 200,
        body: result && letterFields(result.letter),
      })),
    )
  },
})

const expireCall = (letters: Letters): ApiCall => ({
  method: 'POST',
  path: '/api/dlq/expire',
  role: 'operator',
  operationId: 'letters.expire',
  tag: 'letters',
  summary:
    'Expire pending letters whose last failure is long ago; each can be restored for retentionDays from its expiry on. What takes longer than 30 s goes on as a run: 202, and its end is at /api/runs/{id}',
  body: EXPIRE,
  data: either(EXPIRED, RUN),
  statuses: [200, 202],
  idempotent: true,
  answer: async (request) => {
    const { text, integer } = given(EXPIRE, request.body.fields)
    const olderThanDays = integer('olderThanDays')
    const engine = text('engine')
    requireReach(request.caller, engine === null ? null : [engine])
    const expiry = { olderThanDays, engine, actor: request.caller.name }
    return answered(await letters.expireOnce(onceKeyOf(request), expiry))
  },
})

const getCall = (letters: Letters): ApiCall => ({
  method: 'GET',
  path: '/api/dlq/:engine/:rowKey',
  role: 'viewer',
  operationId: 'letters.get',
  tag: 'letters',
  summary: 'A letter with its message, all its failures and its history',
  data: LETTER_DETAIL,
  answer: async (request) => ok(letterDetail(await letters.get(keyOf(request)))),
})

const changeCall = (letters: Letters): ApiCall => ({
  method: 'PATCH',
  path: '/api/dlq/:engine/:rowKey',
  role: 'operator',
  operationId: 'letters.change',
  tag: 'letters',
  summary: 'Discard (Resolved), expire (Expired) or restore (Pending) a letter, with or without notes',
  body: CHANGE,
  data: LETTER,
  failures: [409],
  idempotent: true,
  answer: async (request) => {
    const change = readChange(request)
    return answered(
      await letters.once('letters.change', onceKeyOf(request), async (work) => {
        const letter = await letters.changeIn(work, keyOf(request), change)
        return { status: 200, body: letterFields(letter) }
      }),
    )
  },
})

const retryCall = (letters: Letters): ApiCall => ({
  method: 'POST',
  path: '/api/dlq/:engine/:rowKey/retry',
  role: 'operator',
  isBodyOptional: true,
  operationId: 'letters.retry',
  tag: 'letters',
  summary: 'Send a letter back to its queue, as it is or edited; with dryRun only show what would be sent',
  query: { dryRun: { type: 'boolean', default: false } },
  body: RETRY,
  data: either(RECEIPT, PREVIEW),
  failures: [409],
  idempotent: true,
  answer: async (request) => {
    const retry = readRetry(request)
    if (flagOf(request.query, 'dryRun')) {
      const { outgoing, edited } = await letters.preview(keyOf(request), retry.edit)
      return ok(outgoingFields(outgoing, edited))
    }
    return answered(await letters.retryOnce(onceKeyOf(request), keyOf(request), retry))
  },
})

const answered = ({ status, body }: Answer): ApiAnswer => ({ status, data: body })

const keyOf = ({ params }: ApiRequest): LetterKey => ({
  engine: params.engine ?? '',
  rowKey: params.rowKey ?? '',
})

function statusNamed(text: string): LetterStatus {
  const status = STATUSES.find((known) => known === text)
  if (status === undefined)
    throw failure('status_unknown', { status: shorten(text), known: STATUSES.join(', ') })
  return status
}

function readChange({ body: { fields }, caller }: ApiRequest): Change {
  const { text } = given(CHANGE, fields)
  return {
    status: statusNamed(text('status')),
    notes: notesIn(text('resolutionNotes')),
    actor: caller.name,
  }
}

function readRetry({ body: { fields }, caller }: ApiRequest): Retry {
  const { text } = given(RETRY, fields)
  const payload = optionalPayload(fields, 'payload', 'payloadEncoding')
  return { edit: payload === null ? null : { payload }, notes: notesIn(text('notes')), actor: caller.name }
}

/** Blank counts as none. */
const notesIn = (text: string | null): string | null => (text?.trim() ? text : null)
