/** A transaction that notes what it is asked, for tests that judge work by its statements. */

import type { OfficeWork } from '../../src/letters/work.ts'
import type { Statement, Value } from '../../src/store/database.ts'

/** The same work; the name of each statement that it runs is added to `asked`, as often as it runs. */
export const noting = (work: OfficeWork, asked: string[]): OfficeWork => ({
  ...work,
  tx: new Proxy(work.tx, {
    get(tx, name) {
      const member: unknown = Reflect.get(tx, name)
      if (typeof member !== 'function') return member
      if (name === 'runEach')
        return (statement: Statement, rows: Iterable<readonly Value[]>) => {
          const all = [...rows]
          asked.push(...all.map(() => statement.name))
          return tx.runEach(statement, all)
        }
      return (statement: Statement, ...values: unknown[]) => {
        if (name === 'rows' || name === 'run' || name === 'atCommit') asked.push(statement.name)
        return Reflect.apply(member, tx, [statement, ...values])
      }
    },
  }),
})
