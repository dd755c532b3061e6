/** Checks of options that users give; what is wrong is named. */
import type { Static, TSchema } from 'typebox'
import { failure } from '../../core/errors.ts'
import type { Fixed } from '../../core/settings/kinds.ts'
import { problemsWithWhole, withDefaults } from '../../core/settings/read.ts'

/** Refuses an option by its name. */
export function refuse(option: string, reason: string): never {
  throw failure('outbox_option_invalid', { option, reason })
}

/** Refuses the option that a problem opens with. */
export function refuseFor(problem: string): never {
  const end = problem.indexOf(': ')
  return refuse(problem.slice(0, end), problem.slice(end + 2))
}

/** Options as a schema has them, with defaults for what is left out. Refuses the first that is wrong, by its name behind `key`. */
export function readOptions<Schema extends TSchema>(
  schema: Schema,
  given: unknown,
  key = '',
): Fixed<Static<Schema>> {
  const [problem] = given === undefined ? [] : problemsWithWhole(schema, given, key)
  return problem === undefined ? withDefaults(schema, given) : refuseFor(problem)
}

/** Refuses options that do not exist: most often they are mistyped. `prefix` is what they belong to. */
export function refuseUnknown(given: object, known: readonly string[], prefix = ''): void {
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) refuse(prefix + name, `there is no such option; there are ${known.join(', ')}`)
  }
}

/** The same for the options of a transport, which programs without types may leave out. */
export function checkNames(given: unknown, known: readonly string[]): void {
  if (typeof given !== 'object' || given === null) refuse('transport', 'it has no options')
  refuseUnknown(given, known)
}

export interface Range {
  readonly from: number
  readonly to: number
  readonly whole: boolean
}

export const whole = (from: number, to: number): Range => ({ from, to, whole: true })
export const decimal = (from: number, to: number): Range => ({ from, to, whole: false })

/** Refuses what is no number of a range. */
export function checkNumber(option: string, value: unknown, range: Range): asserts value is number {
  const { from, to } = range
  const fits =
    typeof value === 'number' && value >= from && value <= to && (!range.whole || Number.isInteger(value))
  const allowed = `${range.whole ? 'a whole number' : 'a number'} from ${from} to ${to}`
  if (!fits) refuse(option, `${shown(value)} is not ${allowed}`)
}

/** Refuses a value without the functions that will be called on it. */
export function checkFunctions(option: string, value: unknown, names: readonly string[]): void {
  for (const name of names) {
    // Only looked at: whatever has a function of that name will do.
    const fits = typeof (value as Readonly<Record<string, unknown>> | null | undefined)?.[name] === 'function'
    if (!fits) refuse(option, `it has no function '${name}'`)
  }
}

/** A value as it stands in a refusal. */
export const shown = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : String(value))
