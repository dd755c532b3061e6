/** Compares a value with a schema, key by key; what is wrong is told by the name of its key. */
import Type, { type TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { shown, unknownKey } from './config-error.ts'
import { isRecord } from './given.ts'

/** Told of every problem with the key that has it. */
export type Report = (key: string, problem: string) => void

/** Tells what is wrong with `value`, which stands under `key`. Sections and keys may be left out. */
export function compare(schema: TSchema, value: unknown, key: string, report: Report): void {
  if (Type.IsObject(schema) && isRecord(value)) {
    checkKeys(schema.properties, value, key, report)
  } else if (Type.IsArray(schema) && Array.isArray(value)) {
    for (const [index, element] of value.entries()) {
      checkElement(schema.items, element, `${key}[${index}]`, report)
    }
  } else if (Type.IsRecord(schema) && isRecord(value)) {
    for (const [name, element] of Object.entries(value)) {
      checkElement(Type.RecordValue(schema), element, `${key}.${name}`, report)
    }
  } else if (Type.IsUnion(schema) && isRecord(value) && schema.anyOf.some(Type.IsObject)) {
    // A short form beside a mapping: what is wrong inside the mapping is told by its key.
    for (const variant of schema.anyOf.filter(Type.IsObject)) checkElement(variant, value, key, report)
  } else if (Type.IsObject(schema) || Type.IsArray(schema) || Type.IsRecord(schema)) {
    report(key, `must be ${allowed(schema)}, not ${kindOf(value)}`)
  } else if (!Value.Check(schema, value)) {
    const given = isSecret(schema) ? 'the value (not shown)' : shown(value)
    report(key, `${given} is not allowed; allowed: ${allowed(schema)}`)
  }
}

/** Null is "not given": what YAML makes of a section whose lines are all commented out. */
function checkKeys(
  known: Type.TProperties,
  value: Record<string, unknown>,
  key: string,
  report: Report,
): void {
  for (const [name, inner] of Object.entries(value)) {
    const innerKey = key === '' ? name : `${key}.${name}`
    const schema = Object.hasOwn(known, name) ? known[name] : undefined
    if (schema === undefined) report(innerKey, unknownKey(name, Object.keys(known)))
    else if (inner !== null) compare(schema, inner, innerKey, report)
  }
}

/** Elements of a list or of a mapping are whole: only what is optional in them may be left out. */
function checkElement(schema: TSchema, value: unknown, key: string, report: Report): void {
  compare(schema, value, key, report)
  if (!Type.IsObject(schema) || !isRecord(value)) return
  for (const [name, inner] of Object.entries(schema.properties)) {
    if (Type.IsOptional(inner)) continue
    if ((value[name] ?? null) === null) report(`${key}.${name}`, `is missing; allowed: ${allowed(inner)}`)
  }
}

const allowed = (schema: TSchema): string =>
  'description' in schema ? String(schema.description) : 'see the documentation'

const isSecret = (schema: TSchema): boolean => 'secret' in schema && schema.secret === true

/** What something is, without its value: it may be a secret in the wrong place. */
const kindOf = (value: unknown): string => {
  if (value === null || value === undefined) return 'empty'
  return typeof value === 'object' ? shown(value) : `a ${typeof value}`
}
