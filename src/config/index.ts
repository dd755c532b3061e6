/** Configuration: schema, file + environment + flags, defaults, errors that name the key. */

export { addToken } from './file.ts'
export {
  type ConfigFlags,
  type ConfigSources,
  checkExposure,
  configFileOf,
  loadConfig,
} from './load.ts'
export { officeOptionsOf } from './office-options.ts'
export type { Config } from './schema.ts'
