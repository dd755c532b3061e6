/** What is in force, key by key, and where each value came from. Secrets are masked. */
import { leavesOf, masked, wordsOf } from '../core/settings/read.ts'
import { type Layer, originOf, valueAt } from './layers.ts'
import { type Config, ConfigSchema } from './schema.ts'

export interface SettingInForce {
  readonly key: string
  /** Null: nothing is given, and `otherwise` says what holds. */
  readonly value: unknown
  readonly otherwise: string | null
  readonly from: 'default' | Layer['from']
  /** The file, the variable or the flag; null of defaults. */
  readonly name: string | null
}

export const settingsInForce = (config: Config, layers: readonly Layer[]): readonly SettingInForce[] =>
  leavesOf(ConfigSchema).map(([key, schema]) => {
    const value = valueAt(config, key) ?? null
    const { from = 'default', name = null } = originOf(layers, key) ?? {}
    const otherwise = value === null ? (wordsOf(schema).otherwise ?? 'none') : null
    return { key, value: value === null ? null : masked(schema, value), otherwise, from, name }
  })
