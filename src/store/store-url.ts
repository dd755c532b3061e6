/** Store URLs: an SQLite file, SQLite in memory, or a PostgreSQL database. */
import { ConfigError, shown } from '../core/settings/config-error.ts'

export type StoreUrl =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'memory' }
  | { readonly kind: 'postgres'; readonly url: string }

export const STORE_URL_FORMS =
  "'sqlite:PATH', 'sqlite::memory:' or 'postgres://USER:PASSWORD@HOST:PORT/DATABASE'"

/** Throws a ConfigError that shows no password. */
export function parseStoreUrl(text: string): StoreUrl {
  const store = readStoreUrl(text)
  if (store === null)
    throw new ConfigError([`store: ${shown(text)} is not allowed; allowed: ${STORE_URL_FORMS}`])
  return store
}

export function readStoreUrl(text: string): StoreUrl | null {
  if (text === 'sqlite::memory:') return { kind: 'memory' }
  if (text.startsWith('sqlite:')) {
    const path = sqlitePath(text.slice('sqlite:'.length))
    return path === null ? null : { kind: 'sqlite', path }
  }
  return /^postgres(ql)?:\/\//.test(text) && URL.canParse(text) ? { kind: 'postgres', url: text } : null
}

/** `sqlite:///var/x.db`, as other tools write absolute paths, is accepted; `sqlite://x.db` names a host. */
function sqlitePath(path: string): string | null {
  if (path.trim() === '' || path.includes('\0')) return null
  if (path.startsWith('///')) return path.slice(2)
  return path.startsWith('//') ? null : path
}
