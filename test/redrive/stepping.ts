/** A store that something is done to between any two uses of it: not within, where SQLite has one connection for all. */
import type { Database, Session } from '../../src/store/database.ts'
import { asSnapshot } from '../world/as-snapshot.ts'

/** The same store, with `step` before each use of it, and before each look at a moment of it. */
export function stepping(db: Database, step: (verb: string) => Promise<void>): Database {
  const looking = (session: Session, verb: string): Session => ({
    dialect: session.dialect,
    rows: async (...given) => {
      await step(verb)
      return session.rows(...given)
    },
    run: session.run.bind(session),
    runEach: session.runEach.bind(session),
  })
  const overrides = new Map<string | symbol, unknown>(
    Object.entries({
      transaction: async (verb, work) => {
        await step(verb)
        return db.transaction(verb, work)
      },
      session: async (verb, work) => {
        await step(verb)
        return db.session(verb, work)
      },
      snapshot: (verb, work, options) =>
        db.snapshot(verb, (session) => work(asSnapshot(looking(session, verb))), options),
    } satisfies Partial<Database>),
  )
  return new Proxy(db, {
    get(target, key) {
      const value: unknown = overrides.get(key) ?? Reflect.get(target, key)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
