/** Query parameters that several calls on letters know. */

import { periodOf, type Query } from '../../api/query.ts'
import { failure, refuse } from '../../core/errors.ts'
import { type SourceName, sourceNames } from '../kinds.ts'
import { type LetterStatus, STATUSES } from '../letter.ts'
import { type LetterFilter, RETRY_OUTCOMES, type RetryOutcome } from '../lists/filter.ts'

/** How they look in the OpenAPI document. */
export const STATUS = { type: 'string', enum: [...STATUSES] }

/** `source`; null when it is not given. */
export function sourceOf(query: Query): SourceName | null {
  const text = query.get('source')
  if (text === undefined) return null
  const source = sourceNames().find((known) => known === text)
  if (source === undefined)
    throw failure('source_unknown', { source: shown(text), known: sourceNames().join(', ') })
  return source
}

/** `status`; null when it is not given. */
export function statusOf(query: Query): LetterStatus | null {
  const text = query.get('status')
  if (text === undefined) return null
  const status = STATUSES.find((known) => known === text)
  if (status === undefined)
    throw failure('status_unknown', { status: shown(text), known: STATUSES.join(', ') })
  return status
}

/** A text of the caller's, as errors show it. */
export const shown = (text: string): string => text.slice(0, 64).toWellFormed()

/** More attempts than anything is ever tried. */
const MAX_ATTEMPTS = 1_000_000_000

function minAttemptsOf(query: Query): number | undefined {
  const text = query.get('minAttempts')
  if (text === undefined) return undefined
  const attempts = /^\d{1,10}$/.test(text) ? Number(text) : 0
  if (attempts >= 1 && attempts <= MAX_ATTEMPTS) return attempts
  throw refuse('minAttempts', `'${shown(text)}' is no whole number from 1 to ${MAX_ATTEMPTS}`)
}

function outcomeOf(query: Query): RetryOutcome | undefined {
  const text = query.get('outcome')
  if (text === undefined) return undefined
  const outcome = RETRY_OUTCOMES.find((known) => known === text)
  if (outcome !== undefined) return outcome
  throw refuse('outcome', `'${shown(text)}' is none of ${RETRY_OUTCOMES.join(', ')}`)
}

/** The letters that a list is asked for. */
export function letterFilterOf(query: Query): LetterFilter {
  const { from, to } = periodOf(query)
  return {
    engine: query.get('engine'),
    status: statusOf(query) ?? undefined,
    instanceId: query.get('instanceId'),
    fromDate: from ?? undefined,
    toDate: to ?? undefined,
    source: sourceOf(query) ?? undefined,
    originalQueue: query.get('originalQueue'),
    signature: query.get('signature'),
    correlationId: query.get('correlationId'),
    minAttempts: minAttemptsOf(query),
    outcome: outcomeOf(query),
    q: query.get('q'),
  }
}
