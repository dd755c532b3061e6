/**
 * Settings that a file may give under a second name: `http.host`, `http.port`, `store.url`, `store.maxConnections`, and the section
 * `engineTablesConfig`, under which the registry of the unified tables has `engines.tables`. Both names mean
 * the same setting; a file that gives both, and differently, is refused, because whichever won would surprise somebody.
 */
import { shown } from '../core/settings/config-error.ts'
import { isRecord, type Settings } from '../core/settings/given.ts'

type Path = readonly [string, ...(readonly string[])]

const TABLES_CONFIG = 'engineTablesConfig'

/** The second name, and the one that the setting has. */
const ALIASES: readonly (readonly [alias: Path, name: Path])[] = [
  [['http', 'host'], ['host']],
  [['http', 'port'], ['port']],
  [['store', 'url'], ['store']],
  [
    ['store', 'maxConnections'],
    ['postgres', 'poolSize'],
  ],
  ...(['storageAccountName', 'dlqTableName', 'historyTableName', 'retentionDays'] as const).map(
    (key) => [[TABLES_CONFIG, key] as const, ['engines', 'tables', key] as const] as const,
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
export function withoutAliases(settings: Settings): Record<string, unknown> {
  const { store, http, [TABLES_CONFIG]: tables, ...rest } = settings
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
    ...(isRecord(tables) ? { engines: withTables(rest.engines, tables) } : {}),
  }
  const given = Object.entries({ ...rest, ...known }).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given)
}

/** The section `engines` with these tables; keys that both have are the same. */
function withTables(engines: unknown, tables: Settings): Settings {
  const given = isRecord(engines) ? engines : {}
  const values = Object.entries(tables).filter(([, value]) => value != null)
  return {
    ...given,
    tables: { ...(isRecord(given.tables) ? given.tables : {}), ...Object.fromEntries(values) },
  }
}
