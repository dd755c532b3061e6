/**
 * A recipe: what is changed in every letter of a redrive before it is sent. It is data and an expression in a language that can
 * only compute: no code of anybody's is run.
 */
import { createHash } from 'node:crypto'
import { canonicalJson, parseExactly } from './exact-json.ts'
import { type HeaderRules, parseHeaderRules } from './header-rules.ts'
import { MOST_LEVELS } from './json-pointer.ts'
import { isNestedDeeper } from './json-text.ts'
import { mappingProblem } from './mapping-language.ts'
import { type PatchOperation, parsePatch } from './patch-operation.ts'
import { fieldsOf, given, kindOf, refuse } from './recipe-fields.ts'

export type { HeaderRules } from './header-rules.ts'
export type { PatchOperation } from './patch-operation.ts'

/** At least one of them; `patch` and `mapping` exclude each other. */
export interface Recipe {
  readonly patch: readonly PatchOperation[] | null
  /** A JSONata expression: the payload is its input, and what it gives is the new payload. */
  readonly mapping: string | null
  readonly headers: HeaderRules | null
  /** Of the language of recipes, and the hash of this one: '1-9f86d081884c7d65'. */
  readonly version: string
}

/** A recipe as it is asked for, stored and shown: what it does not have is left out. */
export interface WrittenRecipe {
  readonly patch?: readonly PatchOperation[]
  readonly mapping?: string
  readonly headers?: {
    readonly set?: HeaderRules['set']
    readonly remove?: HeaderRules['remove']
  }
}

/** Of the language that recipes are written in; another number when the same recipe would do something else. */
const LANGUAGE = 1
const HASH_CHARACTERS = 16
export const MOST_MAPPING_BYTES = 16_384

/** The recipe in a text, which is JSON, with all digits of its numbers. */
export function parseRecipeText(text: string, parameter = 'repair'): Recipe {
  if (isNestedDeeper(text, MOST_LEVELS)) {
    throw refuse(parameter, `it is nested more than ${MOST_LEVELS} levels deep`)
  }
  return parseRecipe(parseExactly(text), parameter)
}

/**
 * The recipe that `value` describes: `{ patch?, mapping?, headers? }`. JSON.parse may have taken digits from its numbers: such a
 * one is refused, and `parseRecipeText` knows it. `parameter` is what refusals call the recipe.
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
  return versionedRecipe({
    patch: patch === null ? null : parsePatch(patch, `${parameter}.patch`),
    mapping: mapping === null ? null : parseMapping(mapping, `${parameter}.mapping`),
    headers: headers === null ? null : parseHeaderRules(headers, `${parameter}.headers`),
  })
}

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

/** The recipe with its version: two that say the same have the same. */
function versionedRecipe(rules: Omit<Recipe, 'version'>): Recipe {
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

const writtenHeaders = ({ set, remove }: HeaderRules): NonNullable<WrittenRecipe['headers']> => ({
  ...(Object.keys(set).length === 0 ? {} : { set }),
  ...(remove.length === 0 ? {} : { remove }),
})
