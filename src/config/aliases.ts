/**
 * Settings that a file may give under a second name: `http.host`, `http.port`, `store.url`, `store.maxConnections`, and those that
 * sources know under two. Both names mean the same setting; a file that gives both, and differently, is refused, because whichever won
 * would surprise somebody.
 */
import Type, { type TSchema } from 'typebox'
import { shown } from '../core/settings/config-error.ts'
import { isRecord, type Settings } from '../core/settings/given.ts'
import { SECTIONS } from '../sources/settings.ts'

type Path = readonly [string, ...(readonly string[])]

/** Keys of sources that are sections of their own too. */
const OF_SOURCES = SECTIONS.flatMap(({ name, schema, aliases = {} }) =>
  Object.entries(aliases).flatMap(([alias, key]) => {
    const inner = Type.IsObject(schema) ? schema.properties[key] : undefined
    return inner !== undefined && Type.IsObject(inner) ? [{ alias, path: [name, key] as const, inner }] : []
  }),
)

export const ALIAS_SECTIONS: Readonly<Record<string, TSchema>> = Object.fromEntries(
  OF_SOURCES.map(({ alias, inner }) => [alias, inner]),
)

/** The second name, and the one that the setting has. */
export const ALIASES: readonly (readonly [alias: Path, name: Path])[] = [
  [['http', 'host'], ['host']],
  [['http', 'port'], ['port']],
  [['store', 'url'], ['store']],
  [
    ['store', 'maxConnections'],
    ['postgres', 'poolSize'],
  ],
  ...OF_SOURCES.flatMap(({ alias, path, inner }) =>
    Object.keys(inner.properties).map((key) => [[alias, key] as const, [...path, key] as const] as const),
  ),
]

/** Null and undefined are "not given"; so is a mapping where one value is asked for. */
function valueAt(settings: Settings, [outer, ...rest]: Path): unknown {
  const value = settings[outer] ?? undefined
  const [inner, ...further] = rest
  if (inner === undefined) return isRecord(value) ? undefined : value
  return isRecord(value) ? valueAt(value, [inner, ...further]) : undefined
}

/** Settings that are given twice, and not the same. */
export function problemsOfAliases(settings: Settings): readonly string[] {
  return ALIASES.flatMap(([alias, name]) => {
    const second = valueAt(settings, alias)
    const first = valueAt(settings, name)
    if (second === undefined || first === undefined || second === first) return []
    return [
      `${alias.join('.')}: is ${shown(second)}, but ${name.join('.')} is ${shown(first)}; give one of them`,
    ]
  })
}

/** The same settings, each under its own name. */
export function withoutAliases(settings: Settings): Settings {
  const rest = ALIASES.reduce((left, [[outer, inner = '']]) => without(left, outer, inner), settings)
  return ALIASES.reduce((all, [alias, name]) => {
    const value = valueAt(settings, alias)
    return value === undefined ? all : put(all, name, value)
  }, rest)
}

/** Without a key of a section, and without the section when nothing else is in it. */
function without(settings: Settings, outer: string, inner: string): Settings {
  const { [outer]: section, ...others } = settings
  if (!isRecord(section)) return settings
  const { [inner]: _, ...rest } = section
  return Object.keys(rest).length === 0 ? others : { ...others, [outer]: rest }
}

function put(settings: Settings, [outer, ...rest]: Path, value: unknown): Settings {
  const [inner, ...further] = rest
  if (inner === undefined) return { ...settings, [outer]: value }
  const section = settings[outer]
  return { ...settings, [outer]: put(isRecord(section) ? section : {}, [inner, ...further], value) }
}
