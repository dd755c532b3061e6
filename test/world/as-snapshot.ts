/** A session that is watched or stopped, as a snapshot: all rows of a statement are one batch. */
import type { Session, Snapshot } from '../../src/store/database.ts'

export const asSnapshot = (session: Session): Snapshot => ({
  dialect: session.dialect,
  rows: (statement, ...values) => session.rows(statement, ...values),
  run: (statement, ...values) => session.run(statement, ...values),
  runEach: (statement, rows) => session.runEach(statement, rows),
  async *batches<Row>(...[statement, ...values]: Parameters<Session['rows']>) {
    yield await session.rows<Row>(statement, ...values)
  },
})
