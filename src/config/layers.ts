/** Where settings come from: a file, the environment, flags. Each is checked by itself, and told by its name. */
import Type, { type TSchema } from 'typebox'
import { ConfigError, shown } from '../core/settings/config-error.ts'
import { VARIABLES, variableOf } from '../core/settings/environment.ts'
import { isRecord, type Settings } from '../core/settings/given.ts'
import { problemsWith, propertyOf } from '../core/settings/read.ts'
import { readConfigFile } from './file.ts'
import { ConfigSchema } from './schema.ts'

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

/** Settings of one origin. */
export interface Layer {
  readonly from: 'file' | 'environment' | 'flag'
  /** The path of the file, the variable, the flag. */
  readonly name: string
  readonly settings: Settings
}

/** The configuration file that the sources name, if any. */
export const configFileOf = ({ file, env, flags = {} }: ConfigSources): string | undefined =>
  file ?? flags.config ?? variableOf(env, 'BARTLEBY_CONFIG')

/** All layers, the weakest first; throws one ConfigError with all their problems. */
export function readLayers(sources: ConfigSources): readonly Layer[] {
  const { env, flags = {} } = sources
  const file = configFileOf(sources)
  const given: Settings = { ...flags }
  const reading: (() => Layer | null)[] = [
    ...(file === undefined
      ? []
      : [() => ({ from: 'file' as const, name: file, settings: readConfigFile(file) })]),
    ...VARIABLES.map(({ name, key }) => () => {
      const text = variableOf(env, name)
      return text === undefined ? null : checkedLayer('environment', name, key, text)
    }),
    ...VARIABLES.map(({ flag = '', key = '' }) => () => {
      const value = flag === '' ? undefined : given[key]
      return value === undefined ? null : checkedLayer('flag', flag, key, value)
    }),
  ]
  const layers: Layer[] = []
  const problems: string[] = []
  for (const read of reading) {
    try {
      const layer = read()
      if (layer !== null) layers.push(layer)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(...error.problems)
    }
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return layers
}

/** The layer of one variable or flag; null where it stands for no key. */
function checkedLayer(
  from: 'environment' | 'flag',
  name: string,
  key: string | undefined,
  given: unknown,
): Layer | null {
  const schema = key === undefined ? undefined : schemaAt(key)
  if (key === undefined || schema === undefined) return null
  const value = readText(schema, given)
  const problems =
    Type.IsBoolean(schema) && typeof value === 'string'
      ? [`${key}: ${shown(value)} is not allowed; allowed: '0' or '1'`]
      : problemsWith(schema, value, key)
  if (problems.length > 0) throw new ConfigError(problems.map((problem) => `${from} ${name}: ${problem}`))
  // A mapping, because a key has at least one part.
  const settings = key.split('.').reduceRight((inner, part) => ({ [part]: inner }), value) as Settings
  return { from, name, settings }
}

/** Digits become a number, 1 and 0 yes and no; anything else stays, to be refused as it was given. */
function readText(schema: TSchema, given: unknown): unknown {
  if (typeof given !== 'string') return given
  if (Type.IsInteger(schema) && /^\d{1,15}$/.test(given)) return Number(given)
  if (Type.IsBoolean(schema) && /^[01]$/.test(given)) return given === '1'
  return given
}

const schemaAt = (key: string): TSchema | undefined =>
  key
    .split('.')
    .reduce<TSchema | undefined>(
      (schema, part) => (schema === undefined ? undefined : propertyOf(schema, part)),
      ConfigSchema,
    )

/** The layer that a value is from; undefined: it is the default. */
export const originOf = (layers: readonly Layer[], key: string): Layer | undefined =>
  layers.findLast(({ settings }) => (valueAt(settings, key) ?? null) !== null)

/** The value of a key, which may lie in sections. */
export const valueAt = (settings: Settings, key: string): unknown =>
  key.split('.').reduce<unknown>((at, part) => (isRecord(at) ? at[part] : undefined), settings)
