/** What verify asks of a store, check by check. */
import type { Database, Snapshot, Statement, Value } from '../../src/store/database.ts'
import { verifyStore } from '../../src/verify/verify.ts'

export interface Call {
  readonly invariant: string
  readonly statement: Statement
  readonly values: readonly Value[]
  /** Whether its rows come in batches. */
  readonly isLong: boolean
}

/** Verifies a store and gives all that it was asked, the same but once for each check. */
export async function callsOfVerify(db: Database): Promise<readonly Call[]> {
  const calls = new Map<string, Call>()
  let invariant = 'all'
  const note = (statement: Statement, values: readonly Value[], isLong: boolean) =>
    calls.set(`${invariant} ${statement.name} ${values.join()}`, { invariant, statement, values, isLong })
  const watched = (session: Snapshot): Snapshot => ({
    dialect: session.dialect,
    run: session.run.bind(session),
    runEach: session.runEach.bind(session),
    rows: (statement, ...values) => {
      note(statement, values, false)
      return session.rows(statement, ...values)
    },
    batches: (statement, ...values) => {
      note(statement, values, true)
      return session.batches(statement, ...values)
    },
  })
  const snapshot: Database['snapshot'] = (verb, work, terms) =>
    db.snapshot(verb, (session) => work(watched(session)), terms)
  await verifyStore({ ...db, dialect: db.dialect, snapshot } as Database, {
    onProgress: (progress) => {
      invariant = progress.invariant
    },
  })
  return [...calls.values()]
}
