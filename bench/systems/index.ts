/** The systems under test, in the order of the table. Modules are loaded only in the process that needs them. */
import type { OpenSystem } from '../system.ts'

export type Role = 'ours' | 'peer' | 'floor'
export type Store = 'postgres' | 'redis' | 'sqlite'

export interface SystemEntry {
  readonly title: string
  readonly role: Role
  readonly store: Store
  load(): Promise<OpenSystem>
}

export const systems = {
  'library-postgres': {
    title: 'Bartleby library, PostgreSQL',
    role: 'ours',
    store: 'postgres',
    load: async () => (await import('./library.ts')).openOnPostgres,
  },
  'http-postgres': {
    title: 'Bartleby HTTP, PostgreSQL',
    role: 'ours',
    store: 'postgres',
    load: async () => (await import('./http.ts')).openOnPostgres,
  },
  'pg-boss': {
    title: 'pg-boss',
    role: 'peer',
    store: 'postgres',
    load: async () => (await import('./pg-boss.ts')).open,
  },
  'graphile-worker': {
    title: 'graphile-worker',
    role: 'peer',
    store: 'postgres',
    load: async () => (await import('./graphile-worker.ts')).open,
  },
  bullmq: {
    title: 'BullMQ, Redis',
    role: 'peer',
    store: 'redis',
    load: async () => (await import('./bullmq.ts')).open,
  },
  'floor-postgres': {
    title: 'bare SQL, PostgreSQL',
    role: 'floor',
    store: 'postgres',
    load: async () => (await import('./floor-postgres.ts')).open,
  },
  'library-sqlite': {
    title: 'Bartleby library, SQLite',
    role: 'ours',
    store: 'sqlite',
    load: async () => (await import('./library.ts')).openOnSqlite,
  },
  'http-sqlite': {
    title: 'Bartleby HTTP, SQLite',
    role: 'ours',
    store: 'sqlite',
    load: async () => (await import('./http.ts')).openOnSqlite,
  },
  'floor-sqlite': {
    title: 'bare SQL, SQLite',
    role: 'floor',
    store: 'sqlite',
    load: async () => (await import('./floor-sqlite.ts')).open,
  },
} as const satisfies Record<string, SystemEntry>

export type SystemName = keyof typeof systems

// Object.keys forgets the literal key type; the object is `as const`, so the names are exactly these.
export const systemNames = Object.keys(systems) as SystemName[]

/** The entry of a name that came from outside, for example a flag. */
export function isSystemName(name: string): name is SystemName {
  return Object.hasOwn(systems, name)
}
