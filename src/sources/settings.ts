/** What sources bring to a configuration and to the options of an office: each the section that has its name. */
import Type, { type TSchema } from 'typebox'
import { ConfigError, unknownKey } from '../core/settings/config-error.ts'
import { isRecord } from '../core/settings/given.ts'
import { PostgresSchema } from '../store/settings.ts'
import { STORE_URL_FORMS } from '../store/store-url.ts'
import { type ListedSource, SOURCES } from './index.ts'
import type { SourceModule, SourceSettings } from './source-module.ts'

export const SECTIONS: readonly (SourceSettings & { readonly name: string })[] = SOURCES.flatMap(
  ({ name, settings }) => (settings === undefined ? [] : [{ name, ...settings }]),
)

type SectionSchemas = {
  readonly [Module in ListedSource as TSchema extends SchemaOf<Module>
    ? never
    : Module['name']]: SchemaOf<Module>
}

type SchemaOf<Module> = Module extends SourceModule<string, infer Schema> ? Schema : never

/** Their schemas, by name. */
export const SECTION_SCHEMAS = Object.fromEntries(
  SECTIONS.map(({ name, schema }) => [name, schema]),
  // They come from the list that the type is made of.
) as SectionSchemas

/** Sections have the keys of a configuration; values are checked by the parts that use them. */
const optionsWith = (sources: readonly SourceModule[]): Readonly<Record<string, TSchema | null>> => ({
  store: null,
  postgres: PostgresSchema,
  ...SECTION_SCHEMAS,
  ...Object.fromEntries(sources.map(({ name, settings }) => [name, settings?.schema ?? null])),
  carriesOutRedrives: null,
  unsupportedStore: null,
  sources: null,
  clock: null,
  log: null,
})

/**
 * Refuses options of `Office.open` that do not exist, and options without a store, before anything is opened: a mistyped one would be a
 * setting that silently does nothing. Tells all problems together.
 */
export function checkOfficeOptions(options: unknown): void {
  if (!isRecord(options)) throw new ConfigError([`store: is missing; allowed: ${STORE_URL_FORMS}`])
  const { store, sources } = options
  const problems = unknownIn(options, optionsWith(Array.isArray(sources) ? sources : []), '')
  if (typeof store !== 'string') {
    const what = store === undefined ? 'is missing' : 'must be a text'
    problems.unshift(`store: ${what}; allowed: ${STORE_URL_FORMS}`)
  }
  if (problems.length > 0) throw new ConfigError(problems)
}

function unknownIn(
  given: Readonly<Record<string, unknown>>,
  known: Readonly<Record<string, TSchema | null>>,
  section: string,
): string[] {
  return Object.entries(given).flatMap(([name, value]) => {
    const schema = Object.hasOwn(known, name) ? known[name] : undefined
    if (schema === undefined) return [`${section}${name}: ${unknownKey(name, Object.keys(known))}`]
    return schema === null ? [] : unknownWithin(value, schema, `${section}${name}.`)
  })
}

function unknownWithin(value: unknown, schema: TSchema, section: string): string[] {
  if (!isRecord(value)) return []
  if (Type.IsObject(schema)) return unknownIn(value, schema.properties, section)
  if (!Type.IsRecord(schema)) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    unknownWithin(inner, Type.RecordValue(schema), `${section}${name}.`),
  )
}
