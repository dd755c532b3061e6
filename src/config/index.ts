/** Configuration: file, environment and flags over defaults; errors that name the key. */

export { addToken } from './file.ts'
export { type ConfigFlags, type ConfigSources, configFileOf, originOf } from './layers.ts'
export { checkConfig, checkExposure, loadConfig, loadWithLayers, officeOptionsOf } from './load.ts'
export type { Config } from './schema.ts'
