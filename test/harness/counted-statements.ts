/** A transaction that notes what it is asked, for tests that judge work by its statements. */
import type { Statement } from '../../src/db/database.ts'
import type { OfficeWork } from '../../src/letters/work.ts'

/** The same work; the name of each statement that it runs is added to `asked`. */
export const noting = (work: OfficeWork, asked: string[]): OfficeWork => ({
  ...work,
  tx: new Proxy(work.tx, {
    get(tx, name) {
      const member: unknown = Reflect.get(tx, name)
      if (typeof member !== 'function') return member
      return (statement: Statement, ...values: unknown[]) => {
        if (name === 'rows' || name === 'run' || name === 'atCommit') asked.push(statement.name)
        return Reflect.apply(member, tx, [statement, ...values])
      }
    },
  }),
})
