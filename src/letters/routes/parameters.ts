/** Query parameters that several calls on letters know. */
import { failure } from '../../core/errors.ts'
import type { Query } from '../../http/query.ts'
import { type LetterStatus, SOURCES, type SourceName, STATUSES } from '../letter.ts'

/** How they look in the OpenAPI document. */
export const SOURCE = { type: 'string', enum: [...SOURCES] }
export const STATUS = { type: 'string', enum: [...STATUSES] }

/** `source`; null when it is not given. */
export function sourceOf(query: Query): SourceName | null {
  const text = query.get('source')
  if (text === undefined) return null
  const source = SOURCES.find((known) => known === text)
  if (source === undefined)
    throw failure('source_unknown', { source: shown(text), known: SOURCES.join(', ') })
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

const shown = (text: string): string => text.slice(0, 64).toWellFormed()
