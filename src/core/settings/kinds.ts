/** The kinds of values that keys of a configuration have. Each `description` completes the sentence "allowed: …" in an error. */
import Type from 'typebox'
import { ADDRESS_RANGE_FORM, addressRanges } from '../address-ranges.ts'

export const wholeNumber = (minimum: number, maximum: number, byDefault?: number) =>
  Type.Integer({
    minimum,
    maximum,
    ...(byDefault === undefined ? {} : { default: byDefault }),
    description: `a whole number from ${minimum} to ${maximum}`,
  })

/** A number above zero, with or without a fraction. */
export const positiveNumber = (maximum: number, byDefault?: number) =>
  Type.Number({
    exclusiveMinimum: 0,
    maximum,
    ...(byDefault === undefined ? {} : { default: byDefault }),
    description: `a number above 0, at most ${maximum}`,
  })

export const yesOrNo = (byDefault: boolean) =>
  Type.Boolean({ default: byDefault, description: 'true or false' })

export const oneOf = <const Values extends readonly string[]>(values: Values, byDefault?: Values[number]) =>
  // An enum of a list that is given by name is text to the compiler.
  Type.Unsafe<Values[number]>(
    Type.Enum(values, {
      ...(byDefault === undefined ? {} : { default: byDefault }),
      description: `one of ${values.map((value) => `'${value}'`).join(', ')}`,
    }),
  )

export const addressRange = () =>
  Type.Refine(
    Type.String({ description: ADDRESS_RANGE_FORM }),
    (range) => !('problem' in addressRanges([range])),
  )

/** Every section may be left out, and unknown keys are errors. */
export const section = <Properties extends Type.TProperties>(
  properties: Properties,
  description = 'a mapping',
) => Type.Object(properties, { additionalProperties: false, description })

/** What a schema allows, to be read only. */
export type Fixed<T> = T extends object ? { readonly [Key in keyof T]: Fixed<T[Key]> } : T

/** Some of it: mappings may lack keys, lists are whole. */
export type Given<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [Key in keyof T]?: Given<T[Key]> }
    : T
