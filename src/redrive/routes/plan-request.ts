/**
 * What an operator asks to be planned, read field by field: a field that is unknown, of another type or out of its bounds is refused
 * by name, because a plan that silently leaves out a condition moves the wrong letters.
 */

import { given, isObject, type JsonBody, type JsonObject, optionalText } from '../../api/json-body.ts'
import { refuse } from '../../core/errors.ts'
import { parseExactly } from '../../core/json/exact.ts'
import { JsonText } from '../../core/json/text.ts'
import { checkQueueName } from '../../queues/validate.ts'
import { isSending, type PlanRequest } from '../redrive.ts'
import { parseRecipe, type Recipe } from '../repair/recipe.ts'
import {
  CANARY,
  CANARY_LETTERS,
  type Canary,
  PLAN,
  RATE,
  REDRIVE_ACTIONS,
  REDRIVE_ORDERS,
  type RedriveAction,
  type RedriveOrder,
  STOP_RULE,
} from '../shapes.ts'
import { numberAt, numbersAt, oneOf } from './refusal.ts'
import { readSelection } from './selection.ts'

const MAX_QUEUE_NAME = 512
const MAX_WORD = 64

/** The plan in a body; `actor` is who asks. */
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

/** From the text of the body: the numbers that a patch writes must not lose digits on the way. */
function readRepair({ text, fields }: JsonBody): Recipe | null {
  if (isNone(fields.repair)) return null
  return parseRecipe(exactly(JsonText.of(text).at('repair')?.written ?? ''), 'repair')
}

function exactly(text: string): unknown {
  try {
    return parseExactly(text)
  } catch {
    // It was read as JSON before, which has no limit to its depth.
    throw refuse('repair', 'it is nested too deeply')
  }
}

function readAction(fields: JsonObject): RedriveAction {
  const text = optionalText(fields, 'action', { max: MAX_WORD, min: 0 })
  if (text === null) throw refuse('action', `it is missing, give one of ${REDRIVE_ACTIONS.join(', ')}`)
  return oneOf('action', text, REDRIVE_ACTIONS)
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
  return text === null ? 'key' : oneOf('order', text, REDRIVE_ORDERS)
}

/** Blank reasons are none. */
export function readReason(text: string | null, isRequired: boolean): string | null {
  const reason = text?.trim() ? text : null
  if (reason === null && isRequired)
    throw refuse('reason', 'it is missing: say why the letters are discarded')
  return reason
}

const isNone = (value: unknown): value is null | undefined => value === undefined || value === null

/** Letters a second; null or left out: as fast as it goes. */
export const readRate = (value: unknown): number | null =>
  isNone(value) ? null : numberAt('rate', value, RATE)

/** A number of letters, or an object with that and what is expected of them; null or left out: none go first. */
function readCanary(value: unknown): Canary | null {
  if (isNone(value)) return null
  if (isObject(value)) return numbersAt('canary', value, CANARY)
  return numbersAt('canary', { letters: numberAt('canary', value, CANARY_LETTERS) }, CANARY)
}

function insistOnSending(parameter: string, action: RedriveAction): void {
  if (!isSending(action))
    throw refuse(parameter, `it is only for retry and move, and the action is ${action}`)
}
