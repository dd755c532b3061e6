/**
 * Settings that a file may give under a second name: `http.host`, `http.port`, `store.url`, `store.maxConnections`. Both names mean
 * the same setting; a file that gives both, and differently, is refused, because whichever won would surprise somebody.
 */
import { shown } from './config-error.ts'

type Settings = Readonly<Record<string, unknown>>

/** A plain record, as YAML and JSON give it. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

type Path = readonly [string] | readonly [string, string]

/** The second name, and the one that the setting has. */
const ALIASES: readonly (readonly [alias: Path, name: Path])[] = [
  [['http', 'host'], ['host']],
  [['http', 'port'], ['port']],
  [['store', 'url'], ['store']],
  [
    ['store', 'maxConnections'],
    ['postgres', 'poolSize'],
  ],
]

/** Null and undefined are "not given"; so is a mapping where one value is asked for. */
function valueAt(settings: Settings, [outer, inner]: Path): unknown {
  const value = settings[outer] ?? undefined
  if (inner === undefined) return isRecord(value) ? undefined : value
  return isRecord(value) ? (value[inner] ?? undefined) : undefined
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
export function withoutAliases(settings: Settings): Record<string, unknown> {
  const { store, http, ...rest } = settings
  const { host, port, ...limits } = isRecord(http) ? http : {}
  const poolSize = valueAt(settings, ['store', 'maxConnections'])
  const known = {
    host: host ?? rest.host,
    port: port ?? rest.port,
    store: isRecord(store) ? store.url : store,
    http: isRecord(http) ? limits : undefined,
    ...(poolSize === undefined
      ? {}
      : { postgres: { ...(isRecord(rest.postgres) ? rest.postgres : {}), poolSize } }),
  }
  const given = Object.entries({ ...rest, ...known }).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given)
}
