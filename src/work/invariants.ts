/** R1: a run has done no more than it expected, and has no owner once it is over. */
import { type Integer, type Session, sql } from '../store/database.ts'

/** Few: ended runs are removed after a month. */
const readWrong = sql(
  'verify.runs',
  `SELECT id, kind, state, expected, done + skipped + failed AS looked, owner FROM bartleby.runs
   WHERE done + skipped + failed > expected OR done < 0 OR skipped < 0 OR failed < 0
     OR (ended_at IS NULL) <> (state IN ('running', 'paused')) OR (owner IS NOT NULL AND state <> 'running') ORDER BY id`,
  { bigints: true },
)

type RunRow = Readonly<Record<'id' | 'kind' | 'state' | 'looked', Integer>> &
  Readonly<Record<'expected' | 'owner', Integer | null>>

export const runs = {
  id: 'R1',
  promise: 'a run has done no more than it expected, and one that is not running is nobody’s',
  async *check({ session }: { readonly session: Session }) {
    for (const { id, kind, state, expected, looked, owner } of await session.rows<RunRow>(readWrong))
      yield {
        what: `run ${id} is ${state}, has done ${looked} of ${expected ?? 'any number'} and is ${owner === null ? 'nobody’s' : 'a server’s'}`,
        row: { run: id, kind, state },
      }
  },
}
