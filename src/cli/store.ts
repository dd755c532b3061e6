/** Commands on a store itself, which must exist: opening a missing file would make one. */
import { existsSync } from 'node:fs'
import type { ConfigFlags } from '../config/index.ts'
import type { SourceKit } from '../sources/source-commands.ts'
import type { Database } from '../store/database.ts'
import { CommandFailure, EXIT, type ExitCode, failureOf, usage } from '../terminal/exit.ts'
import type { Terminal } from '../terminal/terminal.ts'

export const kitOf = (terminal: Terminal): SourceKit => ({
  terminal,
  // Most commands only talk to a server.
  withStoreOffice: async (flags, work) =>
    (await import('./store-office.ts')).withStoreOffice(flags, terminal, work),
  sectionOf: async (name, flags) =>
    Object.entries(await configOf(flags, terminal)).find(([key]) => key === name)?.[1],
  onStore: (flags, otherwise, work) => onStore(flags, terminal, otherwise, work),
})

/** Loaded only when needed, as all that `serve` needs. */
export async function configOf(flags: ConfigFlags, { env }: Terminal) {
  const { loadConfig } = await import('../config/index.ts')
  return loadConfig({ env, flags })
}

/** `otherwise` is the code of a missing file. */
export async function requireStore(url: string, otherwise: ExitCode = EXIT.nothing): Promise<void> {
  const { parseStoreUrl } = await import('../store/store-url.ts')
  const store = parseStoreUrl(url)
  if (store.kind === 'memory')
    throw usage('a store in memory is known to its own process only; give a file or a database')
  if (store.kind === 'sqlite' && !existsSync(store.path))
    throw new CommandFailure(otherwise, `there is no store at '${store.path}'`)
}

/** Runs `work` on a store of this version. Whatever keeps a check from its end is no verdict: it has the code `otherwise`. */
async function onStore<T>(
  flags: ConfigFlags,
  terminal: Terminal,
  otherwise: ExitCode,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const { store, unsupportedStore } = await configOf(flags, terminal)
  await requireStore(store, otherwise)
  const { withDatabase } = await import('../store/open.ts')
  const { requirePostgresItself } = await import('../store/postgres-itself.ts')
  const { requireThisVersion } = await import('../migrations.ts')
  const checked = async (db: Database): Promise<T> => {
    if (!unsupportedStore) await requirePostgresItself(db)
    await db.session('store.version', requireThisVersion)
    return work(db)
  }
  try {
    return await withDatabase(store, checked, 2)
  } catch (error) {
    throw failureOf(error, otherwise)
  }
}
