/** Configuration: schema, file + environment + flags, defaults, errors that name the key. */
export { addToken } from './add-token.ts'
export { ConfigError, withoutPassword } from './config-error.ts'
export { checkExposure, isLoopback } from './exposure.ts'
export { type ConfigFlags, type ConfigSources, configFileOf, loadConfig } from './load.ts'
export { type Config, LOG_LEVELS, ROLES, type TokenEntry } from './schema.ts'
export { parseStoreUrl, type StoreUrl } from './store-url.ts'
