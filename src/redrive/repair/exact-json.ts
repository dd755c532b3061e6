/**
 * JSON values whose numbers are all exact: those that JavaScript cannot hold stay as they are written, in the form that the
 * language has for that (`JSON.rawJSON`). `JSON.stringify` writes them back digit by digit.
 */
import { sameNumber } from './same-number.ts'

declare const rawNumberBrand: unique symbol

/** A number as it was written. */
export interface RawNumber {
  readonly rawJSON: string
  readonly [rawNumberBrand]: true
}

interface JsonOfTheEngine {
  rawJSON(text: string): RawNumber
  isRawJSON(value: unknown): value is RawNumber
  parse(
    text: string,
    revive: (name: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown
}

// Every Node that we support has these; the types of our language version do not.
const engine = JSON as unknown as JsonOfTheEngine

/** A number that is written as `text`. */
export const rawNumber = (text: string): RawNumber => engine.rawJSON(text)

/** Whether a value is a number as it was written. */
export const isRawNumber = (value: unknown): value is RawNumber => engine.isRawJSON(value)

/** What the text of a document with inexact numbers must have; most have none, and are read five times as fast without the detour. */
const MAY_BE_INEXACT = /[\d.]{16}|\d[eE]/

/** What a text means, with exact numbers; throws where JSON.parse does. */
export function parseExactly(text: string): unknown {
  if (!MAY_BE_INEXACT.test(text)) return JSON.parse(text)
  return engine.parse(text, (_name, value, { source }) =>
    typeof value === 'number' && source !== undefined && !isExact(value, source) ? rawNumber(source) : value,
  )
}

const isExact = (value: number, source: string): boolean =>
  Number.isFinite(value) && !isBeyondWhole(value) && sameNumber(String(value), source)

/** Whether JavaScript may have rounded this whole number. */
export const isBeyondWhole = (value: number): boolean =>
  Number.isInteger(value) && !Number.isSafeInteger(value)

/** The members of an object that is no number as it was written; null for everything else. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isRawNumber(value)) return null
  // An object, and JSON's own: its members have no symbols for names.
  return value as Readonly<Record<string, unknown>>
}

/** Whether two exact values are the same; the order of members and the way numbers are written do not count. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (isRawNumber(a) && isRawNumber(b)) return sameNumber(a.rawJSON, b.rawJSON)
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b)) return false
    return a.length === b.length && a.every((element, index) => sameJson(element, b[index]))
  }
  const left = membersOf(a)
  const right = membersOf(b)
  if (left === null || right === null) return false
  const names = Object.keys(left)
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && sameJson(left[name], right[name]))
  )
}

/** The same text for the same value: members in the order of their names, no white space. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  const members = membersOf(value)
  if (members === null) return JSON.stringify(value)
  const names = Object.keys(members).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalJson(members[name])}`).join()}}`
}
