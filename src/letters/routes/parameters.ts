/** Query parameters shared by calls on letters. */

import { periodOf, type Query } from '../../api/query.ts'
import { failure, refuse } from '../../core/errors.ts'
import { type SourceName, sourceNames } from '../kinds.ts'
import type { LetterFilter } from '../lists/filter.ts'
import { type LetterStatus, MAX_ATTEMPTS, RETRY_OUTCOMES, STATUSES } from '../shapes.ts'

export function sourceOf(query: Query): SourceName | null {
  const text = query.get('source')
  if (text === undefined) return null
  const source = sourceNames().find((known) => known === text)
  if (source === undefined)
    throw failure('source_unknown', { source: shown(text), known: sourceNames().join(', ') })
  return source
}

export function statusOf(query: Query): LetterStatus | null {
  const text = query.get('status')
  if (text === undefined) return null
  const status = STATUSES.find((known) => known === text)
  if (status === undefined)
    throw failure('status_unknown', { status: shown(text), known: STATUSES.join(', ') })
  return status
}

export function wordOf<Word extends string>(parameter: string, text: string, words: readonly Word[]): Word {
  const word = words.find((known) => known === text)
  if (word === undefined) throw refuse(parameter, `'${shown(text)}' is none of ${words.join(', ')}`)
  return word
}

/** A caller's text in an error. */
export const shown = (text: string): string => text.slice(0, 64).toWellFormed()

function minAttemptsOf(query: Query): number | undefined {
  const text = query.get('minAttempts')
  if (text === undefined) return undefined
  const attempts = /^\d{1,10}$/.test(text) ? Number(text) : 0
  if (attempts >= 1 && attempts <= MAX_ATTEMPTS) return attempts
  throw refuse('minAttempts', `'${shown(text)}' is no whole number from 1 to ${MAX_ATTEMPTS}`)
}

export function letterFilterOf(query: Query): LetterFilter {
  const { from, to } = periodOf(query)
  const outcome = query.get('outcome')
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
    outcome: outcome === undefined ? undefined : wordOf('outcome', outcome, RETRY_OUTCOMES),
    q: query.get('q'),
  }
}
