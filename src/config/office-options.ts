/**
 * The options of `Office.open` by name, before anything is opened: a mistyped one would be a setting that silently does
 * nothing. Values are checked by the parts that use them.
 */
import Type, { type TSchema } from 'typebox'
import { ConfigError, unknownKey } from '../core/settings/config-error.ts'
import { isRecord } from '../core/settings/given.ts'
import type { OfficeOptions } from '../office.ts'
import { STORE_URL_FORMS } from '../store/store-url.ts'
import { FileSchema } from './schema.ts'

/** Sections have the keys of a configuration file; outboxes and Kafka check theirs. */
const OPTIONS = {
  store: null,
  postgres: FileSchema.properties.postgres,
  queues: FileSchema.properties.queues,
  engines: FileSchema.properties.engines,
  outbox: null,
  webhooks: FileSchema.properties.webhooks,
  kafka: null,
  carriesOutRedrives: null,
  unsupportedStore: null,
  clock: null,
  log: null,
} as const satisfies Record<keyof OfficeOptions, TSchema | null>

/** Refuses options that do not exist, and options without a store; tells all problems together. */
export function checkOfficeOptions(options: unknown): void {
  if (!isRecord(options)) throw new ConfigError([`store: is missing; allowed: ${STORE_URL_FORMS}`])
  const problems = unknownIn(options, OPTIONS, '')
  const { store } = options
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
