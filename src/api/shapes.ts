/**
 * The material of API shapes. A shape is written once, in the `shapes.ts` of its module; OpenAPI, body readers, answers and client types
 * follow from it. A comment on a field is for users of the client, a `description` for the document.
 */
import Type, {
  type Static,
  type TArray,
  type TObject,
  type TOptional,
  type TProperties,
  type TSchema,
  type TUnsafe,
} from 'typebox'
import type { Instant } from '../core/clock.ts'

/** The read-only type of a shape. Mapped name by name, unlike TypeBox's `Static`, so that editors find the comments on fields. */
export type Shape<Schema extends TSchema> =
  Schema extends TObject<infer Fields>
    ? FieldsOf<Fields>
    : Schema extends TArray<infer Item>
      ? readonly Shape<Item>[]
      : Schema extends TUnsafe<infer Value>
        ? Value
        : Static<Schema>

type FieldsOf<Fields extends TProperties> = Present<Fields, Exclude<keyof Fields, OptionalIn<Fields>>> &
  Partial<Present<Fields, OptionalIn<Fields>>>

type Present<Fields extends TProperties, Names extends keyof Fields> = {
  readonly [Name in Names]: Shape<Fields[Name]>
}

type OptionalIn<Fields extends TProperties> = {
  [Name in keyof Fields]: Fields[Name] extends TOptional<TSchema> ? Name : never
}[keyof Fields]

/** The same as the office has it: instants for times, under names without `Utc`. */
export type Within<Shown> = {
  readonly [Key in keyof Shown as Key extends `${infer Name}Utc` ? Name : Key]: Key extends `${string}Utc`
    ? Instant | Extract<Shown[Key], null>
    : Shown[Key]
}

/** The query of a call; every parameter may be absent. */
export type Asked<Query extends TProperties> = Partial<Shape<TObject<Query>>>

type Words = Readonly<Record<string, unknown>>

export const TEXT = Type.String()
export const INTEGER = Type.Integer()
export const NUMBER = Type.Number()
export const BOOLEAN = Type.Boolean()
/** ISO 8601 in UTC with microseconds; a `Date` would lose the last three digits. */
export const TIME = Type.String({ format: 'date-time' })

/** Not empty unless `words` say otherwise. */
export const textUpTo = (maxLength: number, words: Words = {}) =>
  Type.String({ minLength: 1, maxLength, ...words })

export const oneOf = <const Values extends readonly string[]>(values: Values, words: Words = {}) =>
  Type.Unsafe<Values[number]>({ type: 'string', enum: values, ...words })

export function orNull<Schema extends TSchema>(schema: Schema, words: Words = {}) {
  const {
    type,
    enum: values,
    ...rules
  }: { readonly type?: unknown; readonly enum?: readonly unknown[] } = schema
  const allowed = values === undefined ? {} : { enum: [...values, null] }
  return Type.Unsafe<Shape<Schema> | null>({ type: [type, 'null'], ...allowed, ...rules, ...words })
}

export const TEXT_OR_NULL = orNull(TEXT)
export const INTEGER_OR_NULL = orNull(INTEGER)
export const NUMBER_OR_NULL = orNull(NUMBER)
export const TIME_OR_NULL = orNull(TIME)

export const either = <Schemas extends readonly TSchema[]>(...schemas: Schemas) =>
  Type.Unsafe<Shape<Schemas[number]>>({ oneOf: schemas })

export const each = <const Names extends readonly string[], Schema extends TSchema>(
  names: Names,
  schema: Schema,
) =>
  // The cast holds: all given names are there.
  Object.fromEntries(names.map((name) => [name, schema])) as Record<Names[number], Schema>

/** Bytes in JSON: text where they are UTF-8, else base64. */
export const TEXT_ENCODINGS = ['utf8', 'base64'] as const
export type TextEncoding = (typeof TEXT_ENCODINGS)[number]
export const ENCODING = oneOf(TEXT_ENCODINGS)
export const ENCODING_OR_NULL = orNull(ENCODING)

/** An engine in a search. */
export const SOUGHT_ENGINE = Type.String({
  description: 'One that is defined, or that ever had a letter or a run',
})
/** An engine to file something under. */
export const FILED_ENGINE = textUpTo(256, {
  description: 'Any name of your own; where `engines.context` is configured, one that is defined',
})

export const DATE = Type.String({ description: 'ISO 8601 with a zone, or a date (midnight UTC)' })

export const PAGE_QUERY = {
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 50 }),
  continuationToken: Type.String({ description: 'Of the page before, asked with the same filters' }),
}

export const pageOf = <Item extends TSchema>(item: Item) =>
  Type.Object({ items: Type.Array(item), continuationToken: TEXT_OR_NULL })

export const ERROR = Type.Object({
  code: TEXT,
  message: TEXT,
  details: Type.Optional(Type.Unsafe<object>({ type: 'object' })),
})

/** Well, worth a look, not working, or not in use. */
export const SOURCE_STATES = ['ok', 'warn', 'fail', 'off'] as const
