/**
 * A recipe: what is changed in every letter of a redrive before it is sent. It is data and an expression in a language that can
 * only compute: no code of anybody's is run. Read from a request, a recipe is right or refused with the place and the reason.
 */
import { createHash } from 'node:crypto'
import { refuse } from '../../core/errors.ts'
import {
  canonicalJson,
  isBeyondWhole,
  isRawNumber,
  kindOf,
  membersOf,
  parseExactly,
} from '../../core/json/exact.ts'
import type { PatchOperation } from '../../core/json/patch.ts'
import { isBelow, MOST_LEVELS, pointerProblem } from '../../core/json/pointer.ts'
import { type HeaderEdit, ITEM_HEADERS, type ItemHeader } from '../../letters/letter.ts'
import { MOST_MAPPING_BYTES, MOST_OPERATIONS } from '../shapes.ts'
import { mappingProblem } from './mapping-language.ts'

export type { PatchOperation } from '../../core/json/patch.ts'

/** At least one of them; `patch` and `mapping` exclude each other. */
export interface Recipe {
  readonly patch: readonly PatchOperation[] | null
  /** A JSONata expression: the payload is its input, and what it gives is the new payload. */
  readonly mapping: string | null
  readonly headers: HeaderRules | null
  /** Of the language of recipes, and the hash of this one: '1-9f86d081884c7d65'. */
  readonly version: string
}

/** Headers of queue items that are set or emptied. */
export interface HeaderRules {
  readonly set: HeaderEdit
  readonly remove: readonly ItemHeader[]
}

/** A recipe as it is asked for, stored and shown: what it does not have is left out. */
export interface WrittenRecipe {
  readonly patch?: readonly PatchOperation[]
  readonly mapping?: string
  readonly headers?: Partial<HeaderRules>
}

/** Of the language that recipes are written in; another number when the same recipe would do something else. */
const LANGUAGE = 1
const HASH_CHARACTERS = 16
const OPERATIONS = ['add', 'remove', 'replace', 'move', 'copy', 'test'] as const

/**
 * The recipe that `value` describes: `{ patch?, mapping?, headers? }`. Its numbers are exact (core/json/exact.ts): one that may have lost
 * digits on its way is refused. `parameter` is what refusals call the recipe.
 */
export function parseRecipe(value: unknown, parameter = 'repair'): Recipe {
  const fields = fieldsOf(value, parameter, ['patch', 'mapping', 'headers'])
  const patch = given(fields, 'patch')
  const mapping = given(fields, 'mapping')
  const headers = given(fields, 'headers')
  if (patch !== null && mapping !== null) {
    throw refuse(parameter, 'it has both patch and mapping, give one of them')
  }
  if (patch === null && mapping === null && headers === null) {
    throw refuse(parameter, 'it changes nothing, give patch, mapping or headers')
  }
  const rules = {
    patch: patch === null ? null : parsePatch(patch, `${parameter}.patch`),
    mapping: mapping === null ? null : parseMapping(mapping, `${parameter}.mapping`),
    headers: headers === null ? null : parseHeaderRules(headers, `${parameter}.headers`),
  }
  // Two that say the same have the same version.
  const hash = createHash('sha256')
    .update(canonicalJson(written(rules)))
    .digest('hex')
  return { ...rules, version: `${LANGUAGE}-${hash.slice(0, HASH_CHARACTERS)}` }
}

/** The recipe in JSON, as in the request and with its version. `JSON.stringify` writes it with all digits. */
export const showRecipe = (recipe: Recipe): WrittenRecipe & { readonly version: string } => ({
  ...written(recipe),
  version: recipe.version,
})

/** A recipe from the store, where it lies in JSON as `showRecipe` shows it or as it is. It was checked before it got there. */
export function readRecipe(text: string): Recipe {
  // Our own text.
  const { patch, mapping, headers, version } = parseExactly(text) as Recipe | ReturnType<typeof showRecipe>
  return {
    patch: patch ?? null,
    mapping: mapping ?? null,
    headers: headers == null ? null : { set: headers.set ?? {}, remove: headers.remove ?? [] },
    version,
  }
}

function written({ patch, mapping, headers }: Omit<Recipe, 'version'>): WrittenRecipe {
  return {
    ...(patch === null ? {} : { patch }),
    ...(mapping === null ? {} : { mapping }),
    ...(headers === null ? {} : { headers: writtenHeaders(headers) }),
  }
}

const writtenHeaders = ({ set, remove }: HeaderRules): Partial<HeaderRules> => ({
  ...(Object.keys(set).length === 0 ? {} : { set }),
  ...(remove.length === 0 ? {} : { remove }),
})

function parseMapping(value: unknown, parameter: string): string {
  if (typeof value !== 'string') throw refuse(parameter, `it is ${kindOf(value)}, give a JSONata expression`)
  const bytes = Buffer.byteLength(value)
  if (bytes > MOST_MAPPING_BYTES) {
    throw refuse(parameter, `it has ${bytes} bytes, at most ${MOST_MAPPING_BYTES} are allowed`)
  }
  const problem = mappingProblem(value)
  if (problem !== null) throw refuse(parameter, problem)
  return value
}

function parsePatch(value: unknown, parameter: string): readonly PatchOperation[] {
  if (!Array.isArray(value)) throw refuse(parameter, `it is ${kindOf(value)}, give a list of operations`)
  if (value.length === 0) throw refuse(parameter, 'it is empty, give at least one operation')
  if (value.length > MOST_OPERATIONS) {
    throw refuse(parameter, `it has ${value.length} operations, at most ${MOST_OPERATIONS} are allowed`)
  }
  return value.map((operation, index) => parseOperation(operation, `${parameter}[${index}]`))
}

/** Members that the operation does not know are left out, as RFC 6902 demands. */
function parseOperation(value: unknown, parameter: string): PatchOperation {
  const fields = membersOf(value)
  if (fields === null) throw refuse(parameter, `it is ${kindOf(value)}, give an object with op and path`)
  const op = OPERATIONS.find((known) => known === fields.op)
  if (op === undefined)
    throw refuse(`${parameter}.op`, `${shown(fields.op)}, give one of ${OPERATIONS.join(', ')}`)
  const path = parsePointer(fields.path, `${parameter}.path`)
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      return { op, path, value: parseValue(fields, `${parameter}.value`) }
    case 'remove':
      if (path === '') throw refuse(`${parameter}.path`, 'the whole payload cannot be removed')
      return { op, path }
    case 'move':
    case 'copy': {
      const from = parsePointer(fields.from, `${parameter}.from`)
      if (op === 'move' && isBelow(path, from)) {
        throw refuse(`${parameter}.path`, 'it lies within from, and a value cannot be moved into itself')
      }
      return { op, from, path }
    }
  }
}

function parsePointer(pointer: unknown, parameter: string): string {
  if (typeof pointer !== 'string') throw refuse(parameter, `${shown(pointer)}, give a JSON Pointer`)
  const problem = pointerProblem(pointer)
  if (problem !== null) throw refuse(parameter, problem)
  return pointer
}

function parseValue(fields: Fields, parameter: string): unknown {
  if (!Object.hasOwn(fields, 'value')) throw refuse(parameter, 'it is missing')
  const problem = valueProblem(fields.value, MOST_LEVELS)
  if (problem !== null) throw refuse(parameter, problem)
  return fields.value
}

/** What is wrong with a value that shall be written; null when nothing is. */
function valueProblem(value: unknown, levels: number): string | null {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return 'it has a number that is too large to be read'
    return isBeyondWhole(value) ? `it has the number ${value}, which may have lost digits on its way` : null
  }
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return null
  if (levels === 0) return `it is nested more than ${MOST_LEVELS} levels deep`
  for (const part of Object.values(value)) {
    const problem = valueProblem(part, levels - 1)
    if (problem !== null) return problem
  }
  return null
}

function parseHeaderRules(value: unknown, parameter: string): HeaderRules {
  const fields = fieldsOf(value, parameter, ['set', 'remove'])
  const set = parseSet(given(fields, 'set') ?? {}, `${parameter}.set`)
  const remove = parseRemove(given(fields, 'remove') ?? [], `${parameter}.remove`)
  const both = remove.find((name) => set[name] !== undefined)
  if (both !== undefined) throw refuse(parameter, `${both} is both in set and in remove`)
  if (Object.keys(set).length + remove.length === 0) {
    throw refuse(parameter, 'it changes nothing, give set or remove')
  }
  return { set, remove }
}

/** As long as it fits into a request: items have no other limit. */
function parseSet(value: unknown, parameter: string): HeaderEdit {
  const fields = fieldsOf(value, parameter, ITEM_HEADERS)
  const set: Partial<Record<ItemHeader, string>> = {}
  for (const name of ITEM_HEADERS) {
    if (!Object.hasOwn(fields, name)) continue
    const text = fields[name]
    if (typeof text !== 'string') throw refuse(`${parameter}.${name}`, `it is ${kindOf(text)}, give a text`)
    if (!text.isWellFormed()) {
      throw refuse(`${parameter}.${name}`, 'it holds half a character (a lone surrogate)')
    }
    set[name] = text
  }
  return set
}

function parseRemove(value: unknown, parameter: string): readonly ItemHeader[] {
  if (!Array.isArray(value)) throw refuse(parameter, `it is ${kindOf(value)}, give a list of headers`)
  value.forEach((name, index) => {
    const place = `${parameter}[${index}]`
    if (!ITEM_HEADERS.includes(name))
      throw refuse(place, `${shown(name)}, give one of ${ITEM_HEADERS.join(', ')}`)
    if (value.indexOf(name) < index) throw refuse(place, `'${name}' is named twice`)
  })
  return ITEM_HEADERS.filter((name) => value.includes(name))
}

/** An object of a request. */
type Fields = Readonly<Record<string, unknown>>

/** The fields of an object, all of them known. */
function fieldsOf(value: unknown, parameter: string, known: readonly string[]): Fields {
  const fields = membersOf(value)
  if (fields === null) throw refuse(parameter, `it is ${kindOf(value)}, give an object`)
  const unknown = Object.keys(fields).find((name) => !known.includes(name))
  if (unknown !== undefined) {
    throw refuse(`${parameter}.${unknown.slice(0, 64)}`, `it is none of ${known.join(', ')}`)
  }
  return fields
}

/** A field; null when it is absent or null. */
const given = (fields: Fields, name: string): unknown =>
  (Object.hasOwn(fields, name) ? fields[name] : null) ?? null

/** What was given, where something else is needed. */
function shown(value: unknown): string {
  if (value === undefined) return 'it is missing'
  return typeof value === 'string' ? `it is '${value.slice(0, 64)}'` : `it is ${kindOf(value)}`
}
