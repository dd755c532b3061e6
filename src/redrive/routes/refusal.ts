/** Refusals of the calls on redrives: by field, with what was given and what is allowed. */
import type { TInteger, TNumber, TObject } from 'typebox'
import { isObject, type JsonObject } from '../../api/json-body.ts'
import { shorten } from '../../api/query.ts'
import { refuse } from '../../core/errors.ts'

export function showValue(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  return `'${shorten(String(value))}'`
}

/** The fields of an object within a body; refuses unknown ones with their place. */
export function objectAt(parameter: string, value: unknown, known: readonly string[]): JsonObject {
  if (!isObject(value))
    throw refuse(parameter, `it is ${showValue(value)}, give an object of ${known.join(', ')}`)
  const unknown = Object.keys(value).find((name) => !known.includes(name))
  if (unknown !== undefined) throw refuse(`${parameter}.${unknown}`, `it is none of ${known.join(', ')}`)
  return value
}

export function numberAt(parameter: string, value: unknown, schema: TNumber | TInteger): number {
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
export function numbersAt<Name extends string>(
  parameter: string,
  value: unknown,
  { properties }: TObject<Record<Name, TNumber | TInteger>>,
): Readonly<Record<Name, number>> {
  const schemas = Object.entries<(TNumber | TInteger) & { readonly default?: number }>(properties)
  const given = objectAt(parameter, value, Object.keys(properties))
  const numbers = schemas.map(([name, schema]) => {
    const number = Object.hasOwn(given, name) ? given[name] : schema.default
    return [name, numberAt(`${parameter}.${name}`, number, schema)]
  })
  // The cast holds: there is a number for each name.
  return Object.fromEntries(numbers) as Record<Name, number>
}
