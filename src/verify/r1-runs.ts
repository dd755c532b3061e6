/** R1: a run has done no more than it expected, and one that is over is nobody's. */
import { type Integer, sql } from '../db/database.ts'
import type { Invariant } from './invariant.ts'

/** Runs are few: those that ended are forgotten after a month. */
const readWrong = sql(
  'verify.runs',
  `SELECT id, kind, state, expected, done + skipped + failed AS looked, owner FROM bartleby.runs
   WHERE done + skipped + failed > expected OR done < 0 OR skipped < 0 OR failed < 0
     OR (ended_at IS NULL) <> (state IN ('running', 'paused')) OR (owner IS NOT NULL AND state <> 'running') ORDER BY id`,
)

export const runs: Invariant = {
  id: 'R1',
  promise: 'a run has done no more than it expected, and one that is not running is nobody’s',
  rows: () => 0,
  async *check({ session }) {
    const rows = await session.rows<{
      id: string
      kind: string
      state: string
      expected: Integer | null
      looked: Integer
      owner: string | null
    }>(readWrong)
    for (const { id, kind, state, expected, looked, owner } of rows)
      yield {
        what: `run ${id} is ${state}, has done ${looked} of ${expected ?? 'any number'} and is ${owner === null ? 'nobody’s' : 'a server’s'}`,
        row: { run: id, kind, state },
      }
  },
}
