/**
 * A recipe: what changes in every letter of a redrive before it is sent. It is data, or an expression that can only compute; nobody's code
 * is run. A recipe from a request is right, or refused with place and reason.
 */
import { createHash } from 'node:crypto'
import jsonata from 'jsonata'
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

export type { PatchOperation } from '../../core/json/patch.ts'

/** At least one; `patch` and `mapping` exclude each other. */
export interface Recipe {
  readonly patch: readonly PatchOperation[] | null
  /** A JSONata expression from the old payload to the new one. */
  readonly mapping: string | null
  readonly headers: HeaderRules | null
  /** Language version and hash: '1-9f86d081884c7d65'. */
  readonly version: string
}

export interface HeaderRules {
  readonly set: HeaderEdit
  readonly remove: readonly ItemHeader[]
}

/** A recipe as it is asked for, stored and shown, without what it does not have. */
interface WrittenRecipe {
  readonly patch?: readonly PatchOperation[]
  readonly mapping?: string
  readonly headers?: Partial<HeaderRules>
}

/** Version of the recipe language; it changes when the same recipe would do something else. */
const LANGUAGE = 1
const HASH_CHARACTERS = 16
const OPERATIONS = ['add', 'remove', 'replace', 'move', 'copy', 'test'] as const

/** Reads `{ patch?, mapping?, headers? }`. Numbers are exact; one that may have lost digits is refused. `parameter` names the recipe. */
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
  // Equal recipes have equal versions.
  const hash = createHash('sha256')
    .update(canonicalJson(written(rules)))
    .digest('hex')
  return { ...rules, version: `${LANGUAGE}-${hash.slice(0, HASH_CHARACTERS)}` }
}

/** The recipe as in the request, with its version. `JSON.stringify` writes it with all digits. */
export const showRecipe = (recipe: Recipe): WrittenRecipe & { readonly version: string } => ({
  ...written(recipe),
  version: recipe.version,
})

/** A recipe from the store, which was checked before it got there. */
export function readRecipe(text: string): Recipe {
  // Written by us.
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

/** Functions that depend on the clock or chance are off, because a plan must show what is sent. `$eval` would run payloads. */
export const SWITCHED_OFF = ['now', 'millis', 'random', 'shuffle', 'eval'] as const

export const whyOff = (name: string): string =>
  name === 'eval'
    ? '$eval is not available: payloads are not to be run'
    : `$${name} is not available: it gives something else each time, and what a plan shows must be what is sent`

/** What is wrong with a mapping; null when it can be run. */
function mappingProblem(mapping: string): string | null {
  if (mapping.trim() === '') return 'it is empty'
  try {
    const off = switchedOffIn(jsonata(mapping).ast())
    return off === undefined ? null : whyOff(off)
  } catch (error) {
    return error instanceof RangeError ? 'it is nested too deeply' : syntaxProblem(mapping, error)
  }
}

/** The first switched-off function that an expression names. */
function switchedOffIn(expression: object): string | undefined {
  const seen = new Set<object>()
  const waiting: object[] = [expression]
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (seen.has(node)) continue
    seen.add(node)
    const { type, value } = node as { readonly type?: unknown; readonly value?: unknown }
    const off = type === 'variable' ? SWITCHED_OFF.find((name) => name === value) : undefined
    if (off !== undefined) return off
    for (const part of Object.values(node)) if (typeof part === 'object' && part !== null) waiting.push(part)
  }
  return undefined
}

/** JSONata's errors have a position behind the word that it did not understand. */
function syntaxProblem(mapping: string, thrown: unknown): string {
  const { message, position } = Object(thrown) as { readonly message?: unknown; readonly position?: unknown }
  const text = typeof message === 'string' ? message : 'it is no JSONata expression'
  if (typeof position !== 'number') return text
  const before = mapping.slice(0, position).split('\n')
  return `${text}, at line ${before.length}, character ${before.at(-1)?.length ?? 0}`
}

function parsePatch(value: unknown, parameter: string): readonly PatchOperation[] {
  if (!Array.isArray(value)) throw refuse(parameter, `it is ${kindOf(value)}, give a list of operations`)
  if (value.length === 0) throw refuse(parameter, 'it is empty, give at least one operation')
  if (value.length > MOST_OPERATIONS) {
    throw refuse(parameter, `it has ${value.length} operations, at most ${MOST_OPERATIONS} are allowed`)
  }
  return value.map((operation, index) => parseOperation(operation, `${parameter}[${index}]`))
}

/** Leaves out unknown members, as RFC 6902 demands. */
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

/** Any length that fits into a request: items have no other limit. */
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

type Fields = Readonly<Record<string, unknown>>

function fieldsOf(value: unknown, parameter: string, known: readonly string[]): Fields {
  const fields = membersOf(value)
  if (fields === null) throw refuse(parameter, `it is ${kindOf(value)}, give an object`)
  const unknown = Object.keys(fields).find((name) => !known.includes(name))
  if (unknown !== undefined) {
    throw refuse(`${parameter}.${unknown.slice(0, 64)}`, `it is none of ${known.join(', ')}`)
  }
  return fields
}

/** null when absent. */
const given = (fields: Fields, name: string): unknown =>
  (Object.hasOwn(fields, name) ? fields[name] : null) ?? null

function shown(value: unknown): string {
  if (value === undefined) return 'it is missing'
  return typeof value === 'string' ? `it is '${value.slice(0, 64)}'` : `it is ${kindOf(value)}`
}
