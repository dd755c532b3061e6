/** How fast a redrive may go, how many letters go first, and when it stops by itself: as a body says it. */
import { isObject } from '../../api/json-body.ts'
import type { Canary, StopRule } from '../redrive.ts'
import { type NumberRules, numberAt, objectAt, wholeFrom } from './refusal.ts'

/** About one letter a day: nobody means less, and the time until the next letter must be one that can be told. */
export const MIN_RATE = 0.00001
export const MAX_RATE = 1_000_000
export const MAX_CANARY = 10_000
export const MAX_OUTCOMES = 10_000
/** A day: whoever waits longer for ten letters has another plan. */
export const MAX_WAIT_SECONDS = 86_400

/** What a canary is unless it says otherwise. */
export const CANARY_DEFAULTS: Canary = { letters: 10, confirmPercent: 100, waitSeconds: 600 }

const RATE: NumberRules = {
  isAllowed: (number) => number >= MIN_RATE && number <= MAX_RATE,
  allowed: `a number from ${MIN_RATE} to ${MAX_RATE}`,
}
const CONFIRM_PERCENT: NumberRules = {
  isAllowed: (number) => number >= 0 && number <= 100,
  allowed: 'a number from 0 to 100',
}
const STOP_PERCENT: NumberRules = {
  isAllowed: (number) => number >= 0 && number < 100,
  allowed: 'a number from 0 to less than 100',
}

/** Letters a second; null or left out: as fast as it goes. */
export const readRate = (value: unknown): number | null =>
  value === undefined || value === null ? null : numberAt('rate', value, RATE)

/** A number of letters, or an object with that and what is expected of them; null or left out: none go first. */
export function readCanary(value: unknown): Canary | null {
  if (value === undefined || value === null) return null
  if (!isObject(value))
    return { ...CANARY_DEFAULTS, letters: numberAt('canary', value, wholeFrom(1, MAX_CANARY)) }
  const given = { ...CANARY_DEFAULTS, ...objectAt('canary', value, Object.keys(CANARY_DEFAULTS)) }
  return {
    letters: numberAt('canary.letters', given.letters, wholeFrom(1, MAX_CANARY)),
    confirmPercent: numberAt('canary.confirmPercent', given.confirmPercent, CONFIRM_PERCENT),
    waitSeconds: numberAt('canary.waitSeconds', given.waitSeconds, wholeFrom(1, MAX_WAIT_SECONDS)),
  }
}

/** null or left out: it does not stop by itself. */
export function readStopRule(value: unknown): StopRule | null {
  if (value === undefined || value === null) return null
  const { percent, of } = objectAt('stopRule', value, ['percent', 'of'])
  return {
    percent: numberAt('stopRule.percent', percent, STOP_PERCENT),
    of: numberAt('stopRule.of', of, wholeFrom(1, MAX_OUTCOMES)),
  }
}
