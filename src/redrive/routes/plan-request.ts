/**
 * A plan as an operator asks for it, read field by field. Fields that are unknown, of another type or out of bounds are refused by name:
 * a plan that silently dropped a condition would move the wrong letters.
 */
import type { TInteger, TNumber, TObject } from 'typebox'
import { given, isObject, type JsonBody, type JsonObject, optionalText } from '../../api/json-body.ts'
import { shorten } from '../../api/query.ts'
import { refuse } from '../../core/errors.ts'
import { parseExactly } from '../../core/json/exact.ts'
import { JsonText } from '../../core/json/text.ts'
import type { LetterFilter } from '../../letters/lists/filter.ts'
import { letterFilterOf, wordOf } from '../../letters/routes/parameters.ts'
import { FILTER_QUERY, type LetterKey } from '../../letters/shapes.ts'
import { checkQueueName } from '../../queues/validate.ts'
import { isSending, type PlanRequest, type Selection } from '../redrive.ts'
import { parseRecipe, type Recipe } from '../repair/recipe.ts'
import {
  CANARY,
  CANARY_LETTERS,
  type Canary,
  MAX_FILTER_TEXT,
  MAX_IDS,
  PLAN,
  RATE,
  REDRIVE_ACTIONS,
  REDRIVE_ORDERS,
  type RedriveAction,
  type RedriveOrder,
  STOP_RULE,
} from '../shapes.ts'

const MAX_QUEUE_NAME = 512
const MAX_WORD = 64
const MAX_SIGNATURE = 256
const MAX_ENGINE = 256
const MAX_ROW_KEY = 4_096

const FILTER_FIELDS = Object.keys(FILTER_QUERY)

export function readPlanRequest(body: JsonBody, actor: string): PlanRequest {
  const { fields } = body
  const { text } = given(PLAN, fields)
  const action = readAction(fields)
  const selection = readSelection(fields)
  const queue = readQueue(fields, action)
  const canary = readCanary(fields.canary)
  if (canary !== null) insistOnSending('canary', action)
  const recipe = readRepair(body)
  if (recipe !== null) insistOnSending('repair', action)
  return {
    selection,
    action,
    queue,
    terms: {
      rate: readRate(fields.rate),
      canary,
      stopRule: isNone(fields.stopRule) ? null : numbersAt('stopRule', fields.stopRule, STOP_RULE),
      order: readOrder(fields),
    },
    reason: readReason(text('reason'), action === 'discard'),
    recipe,
    actor,
  }
}

/** From the text of the body, because numbers of a patch must not lose digits. */
function readRepair({ text, fields }: JsonBody): Recipe | null {
  if (isNone(fields.repair)) return null
  return parseRecipe(exactly(JsonText.of(text).at('repair')?.written ?? ''), 'repair')
}

function exactly(text: string): unknown {
  try {
    return parseExactly(text)
  } catch {
    // JSON.parse, which read it before, has no limit to its depth.
    throw refuse('repair', 'it is nested too deeply')
  }
}

function readAction(fields: JsonObject): RedriveAction {
  const text = optionalText(fields, 'action', { max: MAX_WORD, min: 0 })
  if (text === null) throw refuse('action', `it is missing, give one of ${REDRIVE_ACTIONS.join(', ')}`)
  return wordOf('action', text, REDRIVE_ACTIONS)
}

function readQueue(fields: JsonObject, action: RedriveAction): string | null {
  const queue = optionalText(fields, 'queue', { max: MAX_QUEUE_NAME, min: 0 })
  if (action !== 'move') {
    if (queue !== null) throw refuse('queue', `it is only for move, and the action is ${action}`)
    return null
  }
  if (queue === null) throw refuse('queue', 'it is missing: name the queue that the letters are moved to')
  checkQueueName(queue)
  return queue
}

function readOrder(fields: JsonObject): RedriveOrder {
  const text = optionalText(fields, 'order', { max: MAX_WORD, min: 0 })
  return text === null ? 'key' : wordOf('order', text, REDRIVE_ORDERS)
}

/** A blank reason is none. */
export function readReason(text: string | null, isRequired: boolean): string | null {
  const reason = text?.trim() ? text : null
  if (reason === null && isRequired)
    throw refuse('reason', 'it is missing: say why the letters are discarded')
  return reason
}

const isNone = (value: unknown): value is null | undefined => value === undefined || value === null

/** Letters a second; null: as fast as it goes. */
export const readRate = (value: unknown): number | null =>
  isNone(value) ? null : numberAt('rate', value, RATE)

/** A number of letters, or an object with more about them; null: none go first. */
function readCanary(value: unknown): Canary | null {
  if (isNone(value)) return null
  if (isObject(value)) return numbersAt('canary', value, CANARY)
  return numbersAt('canary', { letters: numberAt('canary', value, CANARY_LETTERS) }, CANARY)
}

function insistOnSending(parameter: string, action: RedriveAction): void {
  if (!isSending(action))
    throw refuse(parameter, `it is only for retry and move, and the action is ${action}`)
}

/** Exactly one of `filter`, `signature` and `ids`; a signature may also narrow a filter. */
function readSelection(fields: JsonObject): Selection {
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

/** The fields as the query of a list. A null is refused: a program that has lost the engine it meant must not plan for all of them. */
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

/** A value of the caller's, in a refusal. */
function showValue(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  return `'${shorten(String(value))}'`
}

/** The fields of an object within a body; refuses unknown ones with their place. */
function objectAt(parameter: string, value: unknown, known: readonly string[]): JsonObject {
  if (!isObject(value))
    throw refuse(parameter, `it is ${showValue(value)}, give an object of ${known.join(', ')}`)
  const unknown = Object.keys(value).find((name) => !known.includes(name))
  if (unknown !== undefined) throw refuse(`${parameter}.${unknown}`, `it is none of ${known.join(', ')}`)
  return value
}

function numberAt(parameter: string, value: unknown, schema: TNumber | TInteger): number {
  const { type, minimum = 0, maximum, exclusiveMaximum }: NumberLimits = schema
  const isWhole = type === 'integer'
  const most = maximum === undefined ? `less than ${exclusiveMaximum}` : maximum
  const allowed = `${isWhole ? 'a whole number' : 'a number'} from ${minimum} to ${most}`
  if (value === undefined) throw refuse(parameter, `it is missing, give ${allowed}`)
  const isAllowed =
    typeof value === 'number' &&
    (!isWhole || Number.isInteger(value)) &&
    value >= minimum &&
    value <= (maximum ?? value) &&
    value < (exclusiveMaximum ?? Number.POSITIVE_INFINITY)
  if (!isAllowed) throw refuse(parameter, `it is ${showValue(value)}, give ${allowed}`)
  return value
}

interface NumberLimits {
  readonly type: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMaximum?: number
}

/** An object of numbers, each within its limits, or the default of its schema. */
function numbersAt<Name extends string>(
  parameter: string,
  value: unknown,
  { properties }: TObject<Record<Name, TNumber | TInteger>>,
): Readonly<Record<Name, number>> {
  const schemas = Object.entries<(TNumber | TInteger) & { readonly default?: number }>(properties)
  const sent = objectAt(parameter, value, Object.keys(properties))
  const numbers = schemas.map(([name, schema]) => {
    const number = Object.hasOwn(sent, name) ? sent[name] : schema.default
    return [name, numberAt(`${parameter}.${name}`, number, schema)]
  })
  // The cast holds: there is a number for each name.
  return Object.fromEntries(numbers) as Record<Name, number>
}
