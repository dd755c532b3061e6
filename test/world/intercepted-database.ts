/**
 * A store that can be stopped at any step: before each statement, before a commit and behind it. What stops it decides whether it
 * goes on, waits or fails; a transaction that fails is rolled back by the store itself, as after a crash.
 */
import type { Database, Session, Statement, Transaction, Value } from '../../src/store/database.ts'
import { asSnapshot } from './as-snapshot.ts'

export interface Step {
  /** What the transaction is for. */
  readonly verb: string
  /** The name of the statement that comes next; `commit`, or `committed` when it is behind that. */
  readonly next: string
  /** That statement. */
  readonly statement?: Statement
}

/** Called before every step; what it throws fails what was going to be done. */
export type Intercept = (step: Step) => void | Promise<void>

/** The same store, with `intercept` before its steps. */
export function intercepted(db: Database, intercept: Intercept): Database {
  const reading = <T>(verb: string, session: Session, work: (session: Session) => Promise<T>): Promise<T> =>
    work(new InterceptedSession(session, (next) => intercept({ verb, ...next })))
  const within = async <T>(
    verb: string,
    tx: Transaction,
    work: (tx: Transaction) => Promise<T>,
  ): Promise<T> => {
    const stops = new InterceptedTransaction(tx, (next) => intercept({ verb, ...next }))
    const result = await work(stops)
    await stops.end()
    return result
  }
  const transaction: Database['transaction'] = async (verb, work) => {
    const result = await db.transaction(verb, (tx) => within(verb, tx, work))
    await intercept({ verb, next: 'committed' })
    return result
  }
  return overriding(db, {
    transaction,
    // As one that has a moment before its commit.
    statement: transaction,
    session: (verb, work) => db.session(verb, (session) => reading(verb, session, work)),
    snapshot: (verb, work, options) =>
      db.snapshot(verb, (at) => reading(verb, at, (session) => work(asSnapshot(session))), options),
  })
}

/** The same store, but `around` has every transaction of this name in its hands, and its number, counted from 1. */
export function wrapped(
  db: Database,
  verb: string,
  around: <T>(call: number, go: () => Promise<T>) => Promise<T>,
): Database {
  let calls = 0
  return overriding(db, {
    transaction: (name, work) =>
      name === verb ? around(++calls, () => db.transaction(name, work)) : db.transaction(name, work),
  })
}

/**
 * The same store, with `step` before each use of it, and before each look at a moment of it: not within a transaction, where SQLite has
 * one connection for all.
 */
export function stepping(db: Database, step: (verb: string) => Promise<void>): Database {
  return overriding(db, {
    transaction: async (verb, work) => {
      await step(verb)
      return db.transaction(verb, work)
    },
    session: async (verb, work) => {
      await step(verb)
      return db.session(verb, work)
    },
    snapshot: (verb, work, options) => {
      const looking = (session: Session) => new InterceptedSession(session, () => step(verb))
      return db.snapshot(verb, (session) => work(asSnapshot(looking(session))), options)
    },
  })
}

/** The same object, with some of its methods replaced. */
export function overriding<T extends object>(whole: T, methods: Partial<T>): T {
  return new Proxy(whole, {
    get(target, key) {
      const value: unknown = Reflect.get(methods, key) ?? Reflect.get(target, key)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

type Stop = (next: Omit<Step, 'verb'>) => void | Promise<void>

class InterceptedSession implements Session {
  readonly dialect: Session['dialect']
  readonly #session: Session
  readonly stop: Stop

  constructor(session: Session, stop: Stop) {
    this.dialect = session.dialect
    this.#session = session
    this.stop = stop
  }

  async rows<Row>(statement: Statement, ...values: readonly Value[]): Promise<Row[]> {
    await this.stop({ next: statement.name, statement })
    return this.#session.rows<Row>(statement, ...values)
  }

  async run(statement: Statement, ...values: readonly Value[]): Promise<number> {
    await this.stop({ next: statement.name, statement })
    return this.#session.run(statement, ...values)
  }

  async runEach(statement: Statement, rows: Iterable<readonly Value[]>): Promise<number> {
    let changed = 0
    for (const values of rows) changed += await this.run(statement, ...values)
    return changed
  }
}

/** Statements left for the commit become steps of their own, so that there is one between any two. */
class InterceptedTransaction extends InterceptedSession implements Transaction {
  readonly #atCommit: [Statement, readonly Value[]][] = []

  atCommit(statement: Statement, ...values: readonly Value[]): void {
    this.#atCommit.push([statement, values])
  }

  async end(): Promise<void> {
    for (const [statement, values] of this.#atCommit) await this.run(statement, ...values)
    await this.stop({ next: 'commit' })
  }
}

/** What an injected crash fails with. */
export class Crash extends Error {
  override readonly name = 'Crash'
}

/** Crashes at one step of what is done from now on; `hit` tells whether that came. */
export class CrashPoint {
  hit = false
  #left: number
  readonly intercept: Intercept = ({ verb, next }) => {
    if (--this.#left !== 0) return
    this.hit = true
    throw new Crash(`before ${next} of ${verb}`)
  }

  /** `step` counts from 1. */
  constructor(step: number) {
    this.#left = step
  }
}

/** Holds what comes to a certain step until it is let go. */
export class Gate {
  readonly #at: (step: Step) => boolean
  readonly #reached = Promise.withResolvers<void>()
  readonly #opened = Promise.withResolvers<void>()
  readonly intercept: Intercept = async (step) => {
    if (!this.#at(step)) return
    this.#reached.resolve()
    await this.#opened.promise
  }

  constructor(at: (step: Step) => boolean) {
    this.#at = at
  }

  /** Resolves when something is held. */
  get reached(): Promise<void> {
    return this.#reached.promise
  }

  /** Lets it go, and everything that comes later. */
  open(): void {
    this.#opened.resolve()
  }
}
