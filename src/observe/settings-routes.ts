/** `GET /api/settings`: what a server runs with, without secrets. */
import { resolve } from 'node:path'
import type { TokenEntry } from '../api/auth.ts'
import type { ApiCall } from '../api/calls.ts'
import type { Instant } from '../core/clock.ts'
import { formatMicros } from '../core/timestamp.ts'
import { VERSION } from '../core/version.ts'
import { parseStoreUrl } from '../store/store-url.ts'
import { SETTINGS, type Settings } from './shapes.ts'

interface ServerSettings {
  readonly startedAt: Instant
  /** As configured; user, password and options are never shown. */
  readonly store: string
  readonly retentionDays: number
  readonly environment: { readonly name: string; readonly colour: string }
  readonly tokens: readonly TokenEntry[]
}

export function settingsCall(server: ServerSettings): ApiCall {
  const { startedAt, store, retentionDays, environment, tokens } = server
  const settings = {
    version: VERSION,
    node: process.version,
    startedAtUtc: formatMicros(startedAt),
    store: storePlace(store),
    retentionDays,
    environment: { name: environment.name, colour: environment.colour },
  }
  return {
    method: 'GET',
    path: '/api/settings',
    role: 'viewer',
    operationId: 'settings.get',
    tag: 'settings',
    summary: 'What this server runs with: version, store, retention, tokens. No secrets',
    data: SETTINGS,
    answer: async ({ caller }) => ({
      status: 200,
      data: {
        ...settings,
        tokens: caller.role === 'admin' ? tokens.map(({ name, role }) => ({ name, role })) : null,
        tokensConfigured: tokens.length > 0,
      },
    }),
  }
}

const POSTGRES_PORT = '5432'

/** Without user, password and options. */
export function storePlace(url: string): Settings['store'] {
  const store = parseStoreUrl(url)
  switch (store.kind) {
    case 'memory':
      return { kind: 'sqlite', place: 'in memory' }
    case 'sqlite':
      return { kind: 'sqlite', place: resolve(store.path) }
    case 'postgres': {
      const { hostname, port, pathname } = new URL(store.url)
      const database = pathname.slice(1)
      // The driver fills in what is left out.
      return {
        kind: 'postgres',
        place: `${hostname || 'default host'}:${port || POSTGRES_PORT}/${database || 'default database'}`,
      }
    }
  }
}
