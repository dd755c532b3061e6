/** How the fields of a recipe are read, and what is said when they are wrong. */
import { type BartlebyError, failure } from '../../core/errors.ts'
import { isRawNumber, membersOf } from './exact-json.ts'

/** An object of a request. */
export type Fields = Readonly<Record<string, unknown>>

/** The fields of an object, all of them known; `parameter` is what refusals call it. */
export function fieldsOf(value: unknown, parameter: string, known: readonly string[]): Fields {
  const fields = membersOf(value)
  if (fields === null) throw refuse(parameter, `it is ${kindOf(value)}, give an object`)
  const unknown = Object.keys(fields).find((name) => !known.includes(name))
  if (unknown !== undefined) {
    throw refuse(`${parameter}.${unknown.slice(0, 64)}`, `it is none of ${known.join(', ')}`)
  }
  return fields
}

/** A field; null when it is absent or null. */
export const given = (fields: Fields, name: string): unknown =>
  (Object.hasOwn(fields, name) ? fields[name] : null) ?? null

/** The place in the request, and what is wrong there. */
export const refuse = (parameter: string, reason: string): BartlebyError =>
  failure('parameter_invalid', { parameter, reason })

/** What was given, where something else is needed. */
export function shown(value: unknown): string {
  if (value === undefined) return 'it is missing'
  return typeof value === 'string' ? `it is '${value.slice(0, 64)}'` : `it is ${kindOf(value)}`
}

/** What a JSON value is called in a refusal. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' && !isRawNumber(value)
    ? 'an object'
    : `a ${isRawNumber(value) ? 'number' : typeof value}`
}
