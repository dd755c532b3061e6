/** The one parser of settings: compares what is given with a schema, tells every problem by the name of its key, puts defaults in. */
import { resolve } from 'node:path'
import Type, { type Static, type TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { ConfigError, shown, unknownKey, withoutPassword } from './config-error.ts'
import { isRecord, withoutNothing } from './given.ts'
import type { Fixed, KeyWords } from './kinds.ts'

/** What a schema says about its key. */
export const wordsOf = (schema: TSchema): KeyWords<unknown> & { readonly description?: string } => schema

/**
 * The settings that `given` makes under `key`, with defaults for what is left out; throws one ConfigError with everything that is wrong.
 * `rules` between keys see what is given, and only where each key is right by itself.
 */
export function readSettings<Schema extends TSchema, Options extends object>(
  schema: Schema,
  given: Options,
  key: string,
  rules: (given: Options) => readonly string[] = () => [],
): Fixed<Static<Schema>> {
  const wrong = problemsWith(schema, given, key)
  if (wrong.length > 0) throw new ConfigError(wrong)
  // Options that are not given may be left out.
  const broken = rules(withoutNothing(given) as Options)
  if (broken.length > 0) throw new ConfigError(broken)
  return withDefaults(schema, given)
}

/** What is given, which was compared, with defaults for what is left out. */
export const withDefaults = <Schema extends TSchema>(schema: Schema, given: unknown): Fixed<Static<Schema>> =>
  // Lists are fixed for readers only.
  Value.Parse(schema, Value.Default(schema, withoutNothing(given ?? undefined))) as Fixed<Static<Schema>>

/** What is wrong with `value`, which stands under `key`; each problem opens with its key. Sections and keys may be left out. */
export function problemsWith(schema: TSchema, value: unknown, key: string): readonly string[] {
  if (Type.IsObject(schema) && isRecord(value)) return problemsOfKeys(schema.properties, value, key)
  const elements = elementsOf(schema, value, key)
  if (elements !== null)
    return elements.flatMap(([element, inner, innerKey]) => problemsWithWhole(element, inner, innerKey))
  const told = key === '' ? '' : `${key}: `
  if (Type.IsObject(schema) || Type.IsArray(schema) || Type.IsRecord(schema))
    return [`${told}must be ${wordsOf(schema).allowed}, not ${kindOf(value)}`]
  if (Value.Check(schema, value)) return []
  const given = wordsOf(schema).secret === true ? 'the value (not shown)' : shown(value)
  return [`${told}${given} is not allowed; allowed: ${wordsOf(schema).allowed}`]
}

/** Null and undefined are "not given": null is what YAML makes of a section whose lines are all commented out. */
const problemsOfKeys = (
  known: Type.TProperties,
  value: Readonly<Record<string, unknown>>,
  key: string,
): readonly string[] =>
  Object.entries(value).flatMap(([name, inner]) => {
    const innerKey = below(key, name)
    const schema = Object.hasOwn(known, name) ? known[name] : undefined
    if (schema === undefined) return [`${innerKey}: ${unknownKey(name, Object.keys(known))}`]
    return (inner ?? null) === null ? [] : problemsWith(schema, inner, innerKey)
  })

/** Elements of a list or of a mapping are whole: only what is optional in them, or has a default, may be left out. */
export function problemsWithWhole(schema: TSchema, value: unknown, key: string): readonly string[] {
  const problems = problemsWith(schema, value, key)
  if (!Type.IsObject(schema) || !isRecord(value)) return problems
  const missing = Object.entries(schema.properties).filter(
    ([name, inner]) => (value[name] ?? null) === null && !Type.IsOptional(inner) && !('default' in inner),
  )
  return [
    ...problems,
    ...missing.map(([name, inner]) => `${below(key, name)}: is missing; allowed: ${wordsOf(inner).allowed}`),
  ]
}

const below = (key: string, name: string): string => (key === '' ? name : `${key}.${name}`)

type Element = readonly [schema: TSchema, value: unknown, key: string]

/** What lies in a list, in a mapping of names, or in a mapping that has a short form beside it; null for everything else. */
function elementsOf(schema: TSchema, value: unknown, key: string): readonly Element[] | null {
  if (Type.IsArray(schema) && Array.isArray(value))
    return value.map((element, index) => [schema.items, element, `${key}[${index}]`])
  if (Type.IsRecord(schema) && isRecord(value))
    return Object.entries(value).map(([name, inner]) => [Type.RecordValue(schema), inner, `${key}.${name}`])
  if (!Type.IsUnion(schema) || !isRecord(value)) return null
  const variants = schema.anyOf.filter(Type.IsObject)
  return variants.length === 0 ? null : variants.map((variant) => [variant, value, key])
}

/** The settings with paths that mean the same wherever the server was started: files lie beside the configuration. */
export function withAbsoluteFiles(schema: TSchema, value: unknown, folder: string): unknown {
  if (wordsOf(schema).file === true && typeof value === 'string') return resolve(folder, value)
  return mapped(schema, value, (inner, innerValue) => withAbsoluteFiles(inner, innerValue, folder))
}

/** The value with `map` done to everything in it that the schema knows. */
function mapped(schema: TSchema, value: unknown, map: (schema: TSchema, value: unknown) => unknown): unknown {
  if (Type.IsArray(schema) && Array.isArray(value)) return value.map((element) => map(schema.items, element))
  if (!isRecord(value)) return value
  if (Type.IsUnion(schema)) {
    const variant = schema.anyOf.find(Type.IsObject)
    return variant === undefined ? value : map(variant, value)
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const known = Type.IsRecord(schema) ? Type.RecordValue(schema) : propertyOf(schema, name)
      return [name, known === undefined ? inner : map(known, inner)]
    }),
  )
}

/** The schema of a key of a section. */
export const propertyOf = (schema: TSchema, name: string): TSchema | undefined =>
  Type.IsObject(schema) && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined

/** The keys of a section that are no sections themselves, in the order of the schema. */
export function leavesOf(schema: TSchema, key = ''): readonly (readonly [key: string, schema: TSchema])[] {
  if (!Type.IsObject(schema)) return [[key, schema]]
  return Object.entries(schema.properties).flatMap(([name, inner]) => leavesOf(inner, below(key, name)))
}

/** A value as it may be shown: secrets and passwords are masked. */
export function masked(schema: TSchema, value: unknown): unknown {
  if (wordsOf(schema).secret === true) return MASK
  if (typeof value === 'string') return withoutPassword(value)
  return mapped(schema, value, masked)
}

const MASK = '***'

/** What something is, without its value: it may be a secret in the wrong place. */
const kindOf = (value: unknown): string => {
  if (value === null || value === undefined) return 'empty'
  return typeof value === 'object' ? shown(value) : `a ${typeof value}`
}
