/**
 * Engines that the store has seen, defined or not: whatever had a letter or a run has a series in history, which is never
 * removed, and a worker that started has its queue on record.
 */

import { readSeriesLabels } from '../../history/entry.ts'
import { seriesHasEngine } from '../../history/record.ts'
import type { Database, Session } from '../../store/database.ts'
import { type EngineQueue, readEngineQueues } from '../records.ts'

/** With a session, as part of its transaction. */
export interface SeenEngines {
  has(engine: string, session?: Session): Promise<boolean>
  /** By name. */
  names(session?: Session): Promise<readonly string[]>
  /** What history has of the engine, or of any. */
  operations(engine: string | null): Promise<readonly string[]>
  queues(session?: Session): Promise<readonly EngineQueue[]>
}

/** Without a store. */
export const NOTHING_SEEN: SeenEngines = {
  has: async () => false,
  names: async () => [],
  operations: async () => [],
  queues: async () => [],
}

/** Names that a server remembers. */
const MAX_REMEMBERED = 10_000

export class StoreSeenEngines implements SeenEngines {
  readonly #db: Database
  /** What was seen once stays. */
  readonly #known = new Set<string>()

  constructor(db: Database) {
    this.#db = db
  }

  async has(engine: string, session?: Session): Promise<boolean> {
    // No name has U+0000, and PostgreSQL would refuse to look for it.
    if (engine.includes('\0')) return false
    if (this.#known.has(engine)) return true
    const found = await this.#in(session, async (at) => {
      if (await seriesHasEngine(at, engine)) return true
      return (await readEngineQueues(at)).some((row) => row.engine === engine)
    })
    // Not from within a transaction: it may see what is rolled back later.
    if (found && session === undefined && this.#known.size < MAX_REMEMBERED) this.#known.add(engine)
    return found
  }

  names(session?: Session): Promise<readonly string[]> {
    return this.#in(session, async (at) => {
      const labels = [...(await readSeriesLabels(at)).values(), ...(await readEngineQueues(at))]
      return [...new Set(labels.map(({ engine }) => engine))].sort()
    })
  }

  operations(engine: string | null): Promise<readonly string[]> {
    return this.#in(undefined, async (at) => {
      const labels = [...(await readSeriesLabels(at)).values()]
      const found = engine === null ? labels : labels.filter((label) => label.engine === engine)
      return [...new Set(found.map(({ operation }) => operation))].sort()
    })
  }

  queues(session?: Session): Promise<readonly EngineQueue[]> {
    return this.#in(session, readEngineQueues)
  }

  #in<T>(session: Session | undefined, read: (at: Session) => Promise<T>): Promise<T> {
    return session === undefined ? this.#db.session('engines.seen', read) : read(session)
  }
}
