/** How the calls on redrives refuse what they are given: by the name of the field, with what was given and what is allowed. */

import { isObject, type JsonObject } from '../../api/json-body.ts'
import { refuse } from '../../core/errors.ts'

const MAX_SHOWN = 64

/** A value of the caller's, as refusals show it. */
export function showValue(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  const text = String(value)
  return `'${(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text).toWellFormed()}'`
}

/** One of the words that are allowed. */
export function oneOf<Word extends string>(parameter: string, text: string, words: readonly Word[]): Word {
  const word = words.find((known) => known === text)
  if (word === undefined) throw refuse(parameter, `${showValue(text)} is none of ${words.join(', ')}`)
  return word
}

/** The fields of an object within a body; refuses those that it does not have, with where it is. */
export function objectAt(parameter: string, value: unknown, known: readonly string[]): JsonObject {
  if (!isObject(value))
    throw refuse(parameter, `it is ${showValue(value)}, give an object of ${known.join(', ')}`)
  const unknown = Object.keys(value).find((name) => !known.includes(name))
  if (unknown !== undefined) throw refuse(`${parameter}.${unknown}`, `it is none of ${known.join(', ')}`)
  return value
}

/** What a number must be. */
export interface NumberRules {
  readonly isAllowed: (number: number) => boolean
  /** In words: "a whole number from 1 to 10000". */
  readonly allowed: string
}

/** A number that obeys. */
export function numberAt(parameter: string, value: unknown, { isAllowed, allowed }: NumberRules): number {
  if (value === undefined) throw refuse(parameter, `it is missing, give ${allowed}`)
  if (typeof value !== 'number' || !isAllowed(value))
    throw refuse(parameter, `it is ${showValue(value)}, give ${allowed}`)
  return value
}

/** Whole numbers within bounds. */
export const wholeFrom = (min: number, max: number): NumberRules => ({
  isAllowed: (number) => Number.isInteger(number) && number >= min && number <= max,
  allowed: `a whole number from ${min} to ${max}`,
})
