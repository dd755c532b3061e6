/**
 * JSON bodies of the office API: an object, or a refusal with place and reason. Accepted texts are well-formed and without U+0000, so that
 * both stores keep them.
 */
import type { IncomingMessage } from 'node:http'
import type { TObject, TOptional, TProperties, TSchema } from 'typebox'
import type { Instant } from '../core/clock.ts'
import { failure, refuse } from '../core/errors.ts'
import { kindOf } from '../core/json/exact.ts'
import { parseTimestamp } from '../core/timestamp.ts'
import { readBody } from './body.ts'

/** The default limit in bytes. */
export const BODY_LIMIT = 1_048_576

export type JsonObject = Readonly<Record<string, unknown>>

export interface JsonBody {
  readonly text: string
  readonly fields: JsonObject
}

export const NO_BODY: JsonBody = { text: '', fields: {} }

const utf8 = new TextDecoder('utf-8', { fatal: true })

export async function readJsonBody(
  request: IncomingMessage,
  limit: number,
  required: boolean,
): Promise<JsonBody> {
  const bytes = await readBody(request, limit)
  const contentType = request.headers['content-type']
  if (contentType !== undefined && !isJson(contentType)) {
    throw failure('content_type_unknown', { given: contentType })
  }
  if (bytes.length === 0 && !required) return NO_BODY
  const text = decode(bytes)
  return { text, fields: parse(text) }
}

const isJson = (contentType: string): boolean =>
  /^(?:application\/json|application\/[\w.+-]+\+json|text\/json)$/i.test(
    contentType.split(';', 1)[0]?.trim() ?? '',
  )

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw failure('json_malformed', { reason: 'it is not UTF-8' })
  }
}

function parse(text: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    if (text.trim() === '') throw failure('json_malformed', { reason: 'it is empty, give a JSON object' })
    throw failure('json_malformed', { reason: error instanceof Error ? error.message : 'it is not JSON' })
  }
  if (!isObject(value)) {
    throw failure('json_malformed', { reason: `it is ${kindOf(value)}, give a JSON object` })
  }
  return value
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Refuses unknown fields: a misspelt one would be ignored without a word. */
export function refuseUnknownFields(fields: JsonObject, known: readonly string[]): void {
  const unknown = Object.keys(fields).find((name) => !known.includes(name))
  if (unknown !== undefined) throw refuse(unknown, `it is none of ${known.join(', ')}`)
}

interface TextRules {
  /** In UTF-16 units. */
  readonly max: number
  readonly min?: number
}

/** null when absent. */
export function optionalText(fields: JsonObject, name: string, { max, min = 1 }: TextRules): string | null {
  const value = fields[name]
  if (value === undefined || value === null) return null
  if (typeof value !== 'string') throw refuse(name, `it is ${kindOf(value)}, give a text`)
  if (value.length < min) throw refuse(name, 'it is empty')
  if (value.length > max) throw refuse(name, `it has ${value.length} characters, at most ${max} are allowed`)
  if (value.includes('\0')) throw refuse(name, 'it holds the null character')
  return value.toWellFormed()
}

export function requiredText(fields: JsonObject, name: string, rules: TextRules): string {
  const value = optionalText(fields, name, rules)
  if (value === null) throw refuse(name, 'it is missing')
  return value
}

export function optionalInteger(
  fields: JsonObject,
  name: string,
  min: number,
  max: number = Number.MAX_SAFE_INTEGER,
): number | null {
  const value = fields[name]
  if (value === undefined || value === null) return null
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    const shown = typeof value === 'number' ? `'${value}'` : kindOf(value)
    throw refuse(name, `it is ${shown}, give a whole number from ${min} to ${max}`)
  }
  return value
}

export function optionalInstant(fields: JsonObject, name: string): Instant | null {
  const text = optionalText(fields, name, { max: 64 })
  if (text === null) return null
  const parsed = parseTimestamp(text)
  if (!parsed.ok) throw refuse(name, parsed.reason)
  return parsed.at
}

/** null only for an optional field. */
type Read<Field, Value> = Field extends TOptional<TSchema> ? Value | null : Value

interface Limits {
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
}

/** Readers of a body's fields by its shape: no others, within their limits. Null counts as absent. */
export function given<Fields extends TProperties>(shape: TObject<Fields>, fields: JsonObject) {
  refuseUnknownFields(fields, Object.keys(shape.properties))
  const required: readonly PropertyKey[] = shape.required ?? []
  const limits = (name: keyof Fields): Limits => shape.properties[name] ?? {}
  const read =
    <Value>(find: (name: string, limits: Limits) => Value | null) =>
    <Name extends keyof Fields & string>(name: Name): Read<Fields[Name], Value> => {
      const value = find(name, limits(name))
      if (value === null && required.includes(name)) throw refuse(name, 'it is missing')
      // The cast holds: null only where the shape does not require the field.
      return value as Read<Fields[Name], Value>
    }
  return {
    text: read((name, { minLength = 0, maxLength = Number.POSITIVE_INFINITY }) =>
      optionalText(fields, name, { min: minLength, max: maxLength }),
    ),
    integer: read((name, { minimum = Number.MIN_SAFE_INTEGER, maximum }) =>
      optionalInteger(fields, name, minimum, maximum),
    ),
    instant: read((name) => optionalInstant(fields, name)),
  }
}

/** The part of a schema that says where null may stand. */
interface Described {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly additionalProperties?: TSchema
  readonly required?: readonly string[]
  readonly items?: TSchema
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
}

/**
 * Refuses the first null that the call's description has no place for: a program that has lost the engine it meant must not get all
 * engines.
 */
export function refuseNulls(schema: unknown, value: unknown, place = '', isRequired = true): void {
  // One of our own descriptions, or none.
  const { type, properties = {}, additionalProperties, required, items } = (schema ?? {}) as Described
  if (value === null) {
    // With several types, null is one of them.
    const kind = typeof type === 'string' ? KINDS[type] : undefined
    if (kind === undefined) return
    throw refuse(place, `it is null, give ${kind}${isRequired ? '' : ' or leave it out'}`)
  }
  if (typeof value !== 'object') return
  if (Array.isArray(value)) {
    for (const [index, element] of value.entries()) refuseNulls(items, element, `${place}[${index}]`)
    return
  }
  for (const [name, member] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    const inner = place === '' ? name : `${place}.${name}`
    refuseNulls(known ?? additionalProperties, member, inner, required?.includes(name) ?? false)
  }
}
