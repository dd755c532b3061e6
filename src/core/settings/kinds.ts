/**
 * The kinds of values that keys of a configuration have. A key is written once: a sentence for its users, what it allows, its default.
 * Its type, its parser (`read.ts`), docs/configuration.md and `bartleby config show` follow.
 */
import Type, { type TSchema, type TString } from 'typebox'
import { ADDRESS_RANGE_FORM, addressRanges } from '../address-ranges.ts'

/** What is known of a key beside its sentence and its type. */
export interface KeyWords<Value> {
  /** Left out: the key is needed, or optional where its schema is. */
  readonly default?: Value
  /** Of an optional key: what holds without it, in words. */
  readonly otherwise?: string
  /** Completes "allowed: …" in an error. */
  readonly allowed?: string
  /** Never shown. */
  readonly secret?: true
  /** The path of a file, relative to that of the configuration. */
  readonly file?: true
}

interface Range<Value = number> extends KeyWords<Value> {
  readonly from: number
  readonly to: number
}

export const wholeNumber = (description: string, { from, to, ...words }: Range) =>
  Type.Integer({
    minimum: from,
    maximum: to,
    allowed: `a whole number from ${from} to ${to}`,
    ...words,
    description,
  })

/** A number with or without a fraction. */
export const decimal = (description: string, { from, to, ...words }: Range) =>
  Type.Number({
    minimum: from,
    maximum: to,
    allowed: `a number from ${from} to ${to}`,
    ...words,
    description,
  })

export const positiveNumber = (description: string, { to, ...words }: Omit<Range, 'from'>) =>
  Type.Number({
    exclusiveMinimum: 0,
    maximum: to,
    allowed: `a number above 0, at most ${to}`,
    ...words,
    description,
  })

export const yesOrNo = (description: string, words: KeyWords<boolean>) =>
  Type.Boolean({ allowed: 'true or false', ...words, description })

export const oneOf = <const Values extends readonly string[]>(
  description: string,
  values: Values,
  words: KeyWords<Values[number]> = {},
) =>
  // An enum of a list that is given by name is text to the compiler.
  Type.Unsafe<Values[number]>(
    Type.Enum(values, {
      allowed: `one of ${values.map((value) => `'${value}'`).join(', ')}`,
      ...words,
      description,
    }),
  )

interface TextForm extends KeyWords<string> {
  readonly allowed: string
  readonly pattern?: RegExp
  /** What a pattern cannot say. */
  readonly is?: (text: string) => boolean
}

export function text(description: string, { is, ...form }: TextForm): TString {
  const schema = Type.String({ ...form, description })
  return is === undefined ? schema : Type.Refine(schema, is)
}

const PATH = { pattern: /^[^\0]+$/, allowed: 'the path of a file' } as const

/** The path of a file, relative to that of the configuration. */
export const file = (description: string, words: Partial<TextForm> = {}): TString =>
  text(description, { ...PATH, ...words, file: true })

export const list = <Element extends TSchema>(
  description: string,
  element: Element,
  { allowed, ...words }: KeyWords<Type.Static<Element>[]> & { readonly allowed: string },
) => Type.Array(element, { allowed, ...words, description })

/** Values under names that users choose. */
export const named = <Element extends TSchema>(
  description: string,
  element: Element,
  { allowed, ...words }: KeyWords<Record<string, never>> & { readonly allowed: string },
) => Type.Record(Type.String(), element, { allowed, ...words, description })

export const addressRange = (description: string): TString =>
  text(description, { allowed: ADDRESS_RANGE_FORM, is: (range) => !('problem' in addressRanges([range])) })

/** Keys under a key. Every section may be left out, and unknown keys are errors. */
export const section = <Properties extends Type.TProperties>(
  description: string,
  properties: Properties,
  allowed = 'a mapping',
) => Type.Object(properties, { additionalProperties: false, default: {}, allowed, description })

/** The same keys, each of which may be left out: of elements of lists and of named values, which are whole otherwise. */
export const optional = <Properties extends Type.TProperties>(properties: Properties) =>
  Type.Partial(Type.Object(properties)).properties

/** What a schema allows, to be read only. */
export type Fixed<T> = T extends object ? { readonly [Key in keyof T]: Fixed<T[Key]> } : T

/** Some of it: sections may lack keys; what lies in lists or under names that users choose is whole. */
export type Given<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? string extends keyof T
      ? T
      : { readonly [Key in keyof T]?: Given<T[Key]> }
    : T
