/**
 * Nulls in bodies of the office API, refused wherever the description of a call has no place for them: where a program has lost the
 * engine that it meant, null must not mean all engines. What a call says in the OpenAPI document is what it takes.
 */
import { failure } from '../core/errors.ts'
import type { JsonSchema } from './proto-schema.ts'

/** As much of a schema as tells where null may stand. */
interface Described {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: JsonSchema
  readonly required?: readonly string[]
  readonly items?: JsonSchema
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
}

/** Refuses the first null that the schema of a body does not allow, and names its place. */
export function refuseNulls(schema: unknown, fields: Readonly<Record<string, unknown>>): void {
  look(schema, fields, '')
}

function look(schema: unknown, value: unknown, place: string): void {
  // A schema of our own descriptions, or none.
  const described = (schema ?? {}) as Described
  if (Array.isArray(value)) {
    for (const [index, element] of value.entries())
      visit(described.items, element, `${place}[${index}]`, true)
    return
  }
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) {
    const known = Object.hasOwn(described.properties ?? {}, name) ? described.properties?.[name] : undefined
    const isRequired = described.required?.includes(name) ?? false
    visit(
      known ?? described.additionalProperties,
      member,
      place === '' ? name : `${place}.${name}`,
      isRequired,
    )
  }
}

function visit(schema: unknown, value: unknown, place: string, isRequired: boolean): void {
  if (value !== null) {
    look(schema, value, place)
    return
  }
  const { type } = (schema ?? {}) as Described
  // Only one type, and that is not null; where several are allowed, null is one of them.
  const kind = typeof type === 'string' ? KINDS[type] : undefined
  if (kind === undefined) return
  const reason = `it is null, give ${kind}${isRequired ? '' : ' or leave it out'}`
  throw failure('parameter_invalid', { parameter: place.toWellFormed(), reason })
}
