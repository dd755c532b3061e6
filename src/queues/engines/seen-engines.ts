/**
 * Engines that the store has seen, defined or not: every letter or run leaves an operation kind in history, which is never removed, and
 * every started worker its queue.
 */
import { readOperationKinds } from '../../history/entry.ts'
import { historyHasEngine } from '../../history/record.ts'
import type { Database, Session } from '../../store/database.ts'
import { type EngineQueue, readEngineQueues } from '../records.ts'

/** Names that a server remembers. */
const MAX_REMEMBERED = 10_000

/** Reads in the transaction of a given session. Without a store nothing was seen. */
export class SeenEngines {
  readonly #db: Database | null
  readonly #known = new Set<string>()

  constructor(db: Database | null = null) {
    this.#db = db
  }

  async has(engine: string, session?: Session): Promise<boolean> {
    // No name has U+0000, and PostgreSQL would refuse to look for it.
    if (engine.includes('\0')) return false
    if (this.#known.has(engine)) return true
    const found = await this.#in(session, false, async (at) => {
      if (await historyHasEngine(at, engine)) return true
      return (await readEngineQueues(at)).some((row) => row.engine === engine)
    })
    // A transaction may see rows that are rolled back later, so it teaches nothing.
    if (found && session === undefined && this.#known.size < MAX_REMEMBERED) this.#known.add(engine)
    return found
  }

  /** In alphabetical order. */
  names(session?: Session): Promise<readonly string[]> {
    return this.#in(session, [], async (at) => {
      const labels = [...(await readOperationKinds(at)).values(), ...(await readEngineQueues(at))]
      return [...new Set(labels.map(({ engine }) => engine))].sort()
    })
  }

  /** Operations in history, of one engine or of all. */
  operations(engine: string | null): Promise<readonly string[]> {
    return this.#in(undefined, [], async (at) => {
      const labels = [...(await readOperationKinds(at)).values()]
      const found = engine === null ? labels : labels.filter((label) => label.engine === engine)
      return [...new Set(found.map(({ operation }) => operation))].sort()
    })
  }

  queues(session?: Session): Promise<readonly EngineQueue[]> {
    return this.#in(session, [], readEngineQueues)
  }

  async #in<T>(session: Session | undefined, none: T, read: (at: Session) => Promise<T>): Promise<T> {
    if (session !== undefined) return read(session)
    return this.#db === null ? none : this.#db.session('engines.seen', read)
  }
}
