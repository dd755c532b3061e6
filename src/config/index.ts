/** Configuration: schema, file + environment + flags, defaults, errors that name the key. */

export { addToken } from './file.ts'
export {
  type ConfigFlags,
  type ConfigSources,
  checkExposure,
  configFileOf,
  loadConfig,
  officeOptionsOf,
} from './load.ts'
export type { Config } from './schema.ts'
