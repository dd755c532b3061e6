/** Puts a configuration together: flags win over the environment, the environment over the file, the file over defaults. */
import { dirname, resolve } from 'node:path'
import { isLoopback } from '../core/address-ranges.ts'
import { ConfigError, shown } from '../core/settings/config-error.ts'
import { overlay, type Settings } from '../core/settings/given.ts'
import { withAbsoluteFiles, withDefaults } from '../core/settings/read.ts'
import type { OfficeOptions } from '../office.ts'
import { SECTIONS } from '../sources/settings.ts'
import { readConfigFile } from './file.ts'
import { type Config, checkSettings, FileSchema } from './schema.ts'

/** What the command line gives, as text or already read. */
export interface ConfigFlags {
  readonly host?: string | undefined
  readonly port?: number | string | undefined
  readonly store?: string | undefined
  readonly unsupportedStore?: boolean | undefined
  readonly config?: string | undefined
}

export interface ConfigSources {
  /** The configuration file; the same as the flag `config`. */
  readonly file?: string | undefined
  readonly env: NodeJS.ProcessEnv
  readonly flags?: ConfigFlags
}

/** The configuration that the sources give together; throws one ConfigError with all their problems. */
export function loadConfig(sources: ConfigSources): Config {
  const { env, flags = {} } = sources
  const problems: string[] = []
  const collect = (read: () => Settings): Settings => {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(...error.problems)
      return {}
    }
  }
  const file = configFileOf(sources)
  const fromFile = file === undefined ? {} : collect(() => readConfigFile(file))
  const fromEnvironment = collect(() => environmentSettings(env))
  const fromFlags = collect(() =>
    checked([
      { where: 'flag --host', settings: { host: flags.host } },
      { where: 'flag --port', settings: { port: numberOf(flags.port) } },
      { where: 'flag --store', settings: { store: flags.store } },
      { where: 'flag --unsupported-store', settings: { unsupportedStore: flags.unsupportedStore } },
    ]),
  )
  const testApi = testApiOf(env, problems)
  if (problems.length > 0) throw new ConfigError(problems)
  const merged = [fromFile, fromEnvironment, fromFlags].reduce(overlay)
  const folder = file === undefined ? process.cwd() : dirname(resolve(file))
  return { ...withDefaults(FileSchema, withAbsoluteFiles(FileSchema, merged, folder)), testApi }
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

/** The configuration file that the sources name, if any. */
export const configFileOf = ({ file, env, flags = {} }: ConfigSources): string | undefined =>
  file ?? flags.config ?? textOf(env.BARTLEBY_CONFIG)

function environmentSettings(env: NodeJS.ProcessEnv): Settings {
  const variable = (name: string, settings: (text: string | undefined) => Settings) => ({
    where: `environment ${name}`,
    settings: settings(textOf(env[name])),
  })
  return checked([
    variable('BARTLEBY_HOST', (host) => ({ host })),
    variable('BARTLEBY_PORT', (text) => ({ port: numberOf(text) })),
    variable('BARTLEBY_STORE', (store) => ({ store })),
    variable('BARTLEBY_UNSUPPORTED_STORE', (text) => ({ unsupportedStore: yesOrNoOf(text) })),
    variable('BARTLEBY_POSTGRES_LISTEN_URL', (url) => nested('postgres', 'listenUrl', url)),
    variable('BARTLEBY_LOG_LEVEL', (level) => nested('log', 'level', level)),
  ])
}

/** The settings that were given, in one; throws with the problems of all of them. */
function checked(given: readonly { where: string; settings: Settings }[]): Settings {
  const present = given.filter(({ settings }) => Object.values(settings).some((value) => value !== undefined))
  const problems = present.flatMap(({ where, settings }) => checkSettings(where, settings))
  if (problems.length > 0) throw new ConfigError(problems)
  return present.map(({ settings }) => settings).reduce(overlay, {})
}

function testApiOf(env: NodeJS.ProcessEnv, problems: string[]): boolean {
  const given = textOf(env.BARTLEBY_TEST_API)
  if (given !== undefined && given !== '0' && given !== '1') {
    problems.push(`environment BARTLEBY_TEST_API: ${shown(given)} is not allowed; allowed: '0' or '1'`)
  }
  return given === '1'
}

const nested = (section: string, key: string, value: string | undefined): Settings =>
  value === undefined ? {} : { [section]: { [key]: value } }

/** A variable that is set to nothing is not set: compose files and CI cannot leave one out. */
const textOf = (value: string | undefined): string | undefined => (value === '' ? undefined : value)

/** 1 and 0 become yes and no; anything else stays, to be refused as it was given. */
const yesOrNoOf = (value: string | undefined): boolean | string | undefined =>
  value === '1' ? true : value === '0' ? false : value

/** Digits become a number; anything else stays, to be refused as it was given. */
const numberOf = (value: number | string | undefined): number | string | undefined =>
  typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value

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
