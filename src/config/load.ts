/** Puts a configuration together: flags win over the environment, the environment over the file, the file over defaults. */
import { dirname, resolve } from 'node:path'
import { isLoopback } from '../core/address-ranges.ts'
import { ConfigError, shown } from '../core/settings/config-error.ts'
import { overlay, type Settings } from '../core/settings/given.ts'
import { withAbsoluteFiles, withDefaults } from '../core/settings/read.ts'
import type { OfficeOptions } from '../office.ts'
import { SOURCES } from '../sources/index.ts'
import { SECTIONS } from '../sources/settings.ts'
import { type ConfigSources, configFileOf, readLayers } from './layers.ts'
import { type Config, ConfigSchema } from './schema.ts'

/** The configuration that the sources give together; throws one ConfigError with all their problems. */
export const loadConfig = (sources: ConfigSources): Config => loadWithLayers(sources).config

/** The same, and where it comes from. */
export function loadWithLayers(sources: ConfigSources) {
  const layers = readLayers(sources)
  const given = layers.map(({ settings }) => settings).reduce<Settings>(overlay, {})
  const file = configFileOf(sources)
  const folder = file === undefined ? process.cwd() : dirname(resolve(file))
  const config: Config = withDefaults(ConfigSchema, withAbsoluteFiles(ConfigSchema, given, folder))
  return { config, layers }
}

/**
 * What of a configuration an office is opened with: its store, and the section of each source. `isPassing`: it is open for one command,
 * and what only servers do is left to them.
 */
export function officeOptionsOf(config: Config, { isPassing = false } = {}): OfficeOptions {
  const { store, postgres, unsupportedStore } = config
  const given: Settings = config
  const sections = SECTIONS.flatMap(({ name, isForServers = false }) =>
    isPassing && isForServers ? [] : [[name, given[name]]],
  )
  return { store, postgres, unsupportedStore, ...Object.fromEntries(sections) }
}

/** Throws when other machines could reach the server and no token is configured. */
export function checkExposure(config: Pick<Config, 'host' | 'auth'>): void {
  if (isLoopback(config.host) || config.auth.tokens.length > 0) return
  throw new ConfigError([
    `host: ${shown(config.host)} can be reached from other machines, but auth.tokens is empty: anyone could read ` +
      "and change everything. Run 'bartleby token create', put the entry it prints under auth.tokens in the " +
      'configuration file, and start with --config FILE (or BARTLEBY_CONFIG=FILE). To serve this machine only, ' +
      "use '127.0.0.1' as host.",
  ])
}

/** Everything that would keep a server from starting with this configuration, as far as that can be told without opening its store. */
export function checkConfig(sources: ConfigSources): readonly string[] {
  const problems: string[] = []
  const collect = <T>(read: () => T): T | undefined => {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(...error.problems)
    }
  }
  const config = collect(() => loadConfig(sources))
  if (config === undefined) return problems
  collect(() => checkExposure(config))
  const given: Settings = config
  // Offers read the files that sections name.
  for (const { name, offers } of SOURCES) collect(() => offers?.(given[name]))
  return problems
}
