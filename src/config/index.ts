/** Configuration: schema, file + environment + flags, defaults, errors that name the key. */

export { ConfigError, withoutPassword } from '../core/settings/config-error.ts'
export { parseStoreUrl, type StoreUrl } from '../store/store-url.ts'
export { addToken } from './file.ts'
export {
  type ConfigFlags,
  type ConfigSources,
  checkExposure,
  configFileOf,
  loadConfig,
} from './load.ts'
export { type Config, LOG_LEVELS, ROLES, type TokenEntry } from './schema.ts'
