/** Commands on a store that must be there already. */
import { existsSync } from 'node:fs'
import { CommandFailure, EXIT } from './exit.ts'

/** What the flag `--unsupported-store` does. */
export const UNSUPPORTED_STORE = 'take a server that is like PostgreSQL but another product, at your own risk'

/** Fails unless there is such a store: opening a file that is not there would make one. */
export async function requireStore(url: string): Promise<void> {
  const { parseStoreUrl } = await import('../config/store-url.ts')
  const store = parseStoreUrl(url)
  if (store.kind === 'memory') {
    throw new CommandFailure(
      EXIT.usage,
      'a store in memory is known to its own process only; give a file or a database',
    )
  }
  if (store.kind === 'sqlite' && !existsSync(store.path)) {
    throw new CommandFailure(EXIT.nothing, `there is no store at '${store.path}'`)
  }
}
