/** Which letters a plan is for: those of a filter, of a signature, or named one by one. */

import { isObject, type JsonObject, optionalText } from '../../api/json-body.ts'
import { refuse } from '../../core/errors.ts'
import type { LetterFilter } from '../../letters/lists/filter.ts'
import { letterFilterOf } from '../../letters/routes/parameters.ts'
import type { LetterKey } from '../../letters/shapes.ts'
import { FILTER_QUERY } from '../../letters/shapes.ts'
import type { Selection } from '../redrive.ts'
import { MAX_FILTER_TEXT, MAX_IDS } from '../shapes.ts'
import { objectAt, showValue } from './refusal.ts'

const MAX_SIGNATURE = 256
const MAX_ENGINE = 256
const MAX_ROW_KEY = 4_096

const FILTER_FIELDS = Object.keys(FILTER_QUERY)

/** Exactly one of `filter`, `signature` and `ids`; a signature may also narrow a filter. */
export function readSelection(fields: JsonObject): Selection {
  const signature = optionalText(fields, 'signature', { max: MAX_SIGNATURE })
  const filter = fields.filter ?? null
  const ids = fields.ids ?? null
  if (ids !== null) {
    const other = filter !== null ? 'filter' : signature !== null ? 'signature' : null
    if (other !== null)
      throw refuse('ids', `it is given with ${other}, give exactly one of filter, signature, ids`)
    return { by: 'ids', ids: readIds(ids) }
  }
  if (filter === null && signature === null)
    throw refuse('filter', 'it is missing, give exactly one of filter, signature, ids')
  return { by: 'filter', filter: readFilter(filter ?? {}, signature) }
}

function readFilter(value: unknown, signature: string | null): LetterFilter {
  const filter = letterFilterOf(queryOf(objectAt('filter', value, FILTER_FIELDS)))
  if (signature === null) return filter
  if (filter.signature !== undefined && filter.signature !== signature)
    throw refuse('signature', `it is another than ${showValue(filter.signature)}, which the filter has`)
  return { ...filter, signature }
}

/**
 * The fields as the query of a list would have them, to be read by the same code. A null is refused: where a program has lost the
 * engine that it meant, the plan must not be for all of them.
 */
function queryOf(fields: JsonObject): ReadonlyMap<string, string> {
  const query = new Map<string, string>()
  for (const [name, value] of Object.entries(fields)) {
    const where = `filter.${name}`
    if (name === 'minAttempts') {
      if (typeof value !== 'number')
        throw refuse(where, `it is ${showValue(value)}, give a number or leave it out`)
      query.set(name, String(value))
      continue
    }
    if (typeof value !== 'string')
      throw refuse(where, `it is ${showValue(value)}, give a text or leave it out`)
    if (value === '') throw refuse(where, 'it is empty, give a text or leave it out')
    query.set(name, optionalText({ [where]: value }, where, { max: MAX_FILTER_TEXT }) ?? '')
  }
  return query
}

function readIds(value: unknown): readonly LetterKey[] {
  if (!Array.isArray(value)) throw refuse('ids', `it is ${showValue(value)}, give a list of letters`)
  const ids: readonly unknown[] = value
  if (ids.length === 0) throw refuse('ids', 'it is empty, name at least one letter')
  if (ids.length > MAX_IDS)
    throw refuse('ids', `it has ${ids.length} letters, at most ${MAX_IDS} are allowed`)
  return ids.map((id, index) => readId(`ids[${index}]`, id))
}

/** `ENGINE/ROWKEY`, or both as fields; neither has a slash in it. */
function readId(where: string, value: unknown): LetterKey {
  if (isObject(value)) {
    const { engine, rowKey } = objectAt(where, value, ['engine', 'rowKey'])
    return {
      engine: textAt(`${where}.engine`, engine, MAX_ENGINE),
      rowKey: textAt(`${where}.rowKey`, rowKey, MAX_ROW_KEY),
    }
  }
  const [engine, rowKey] = typeof value === 'string' ? splitAtSlash(value) : []
  if (engine === undefined || rowKey === undefined)
    throw refuse(where, `it is ${showValue(value)}, give 'ENGINE/ROWKEY' or an object of engine and rowKey`)
  return { engine: textAt(where, engine, MAX_ENGINE), rowKey: textAt(where, rowKey, MAX_ROW_KEY) }
}

function splitAtSlash(text: string): readonly string[] {
  const slash = text.indexOf('/')
  return slash < 1 || slash === text.length - 1 ? [] : [text.slice(0, slash), text.slice(slash + 1)]
}

function textAt(where: string, value: unknown, max: number): string {
  const text = optionalText({ [where]: value }, where, { max })
  if (text === null) throw refuse(where, 'it is missing')
  return text
}
