/** Checks of options from users. Refusals name the option. */
import type { Static, TSchema } from 'typebox'
import { failure } from '../../core/errors.ts'
import type { Fixed } from '../../core/settings/kinds.ts'
import { problemsWithWhole, withDefaults } from '../../core/settings/read.ts'

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

/** Refuses unknown options, most often mistyped. `prefix` names what they belong to. */
export function refuseUnknown(given: object, known: readonly string[], prefix = ''): void {
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) refuse(prefix + name, `there is no such option; there are ${known.join(', ')}`)
  }
}

/** For transports, whose options programs without types may leave out. */
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

export function checkNumber(option: string, value: unknown, range: Range): asserts value is number {
  const { from, to } = range
  const fits =
    typeof value === 'number' && value >= from && value <= to && (!range.whole || Number.isInteger(value))
  const allowed = `${range.whole ? 'a whole number' : 'a number'} from ${from} to ${to}`
  if (!fits) refuse(option, `${quoted(value)} is not ${allowed}`)
}

export function checkFunctions(option: string, value: unknown, names: readonly string[]): void {
  for (const name of names) {
    // Any object with a function of that name will do.
    const fits = typeof (value as Readonly<Record<string, unknown>> | null | undefined)?.[name] === 'function'
    if (!fits) refuse(option, `it has no function '${name}'`)
  }
}

export const quoted = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : String(value))
