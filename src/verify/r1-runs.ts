/** R1: a run has done no more than it expected, and one that is over is nobody's. The run of a redrive is what the redrive is. */
import { RUN_STATES } from '../redrive/commands.ts'
import { PLAN_RUN, REDRIVE_RUN } from '../redrive/redrive.ts'
import type { FoundRow, Invariant } from './invariant.ts'
import { read } from './walk.ts'

/** Runs are few: those that ended are forgotten after a month. */
const readWrong = read(
  'runs',
  `SELECT id, kind, state, expected, done + skipped + failed AS looked, owner FROM bartleby.runs
   WHERE done + skipped + failed > expected OR done < 0 OR skipped < 0 OR failed < 0
     OR (ended_at IS NULL) <> (state IN ('running', 'paused')) OR (owner IS NOT NULL AND state <> 'running') ORDER BY id`,
)

const states = Object.entries(RUN_STATES).map(([state, run]) => `WHEN '${state}' THEN '${run}'`)

/** Redrives and their runs, of which one is not what the other says. A plan that was dropped once it was made has no run. */
const readApart = read(
  'redrivesAndRuns',
  `SELECT coalesce(redrive.id, run.id) AS redrive, redrive.state, run.state AS run
   FROM (SELECT id, state, started_at, ended_at FROM bartleby.redrives WHERE state <> 'forgotten') AS redrive
   FULL JOIN (SELECT id, state, ended_at FROM bartleby.runs WHERE kind IN ('${PLAN_RUN}', '${REDRIVE_RUN}')) AS run
     ON run.id = redrive.id
   WHERE run.state IS DISTINCT FROM CASE redrive.state ${states.join(' ')} END
       AND NOT (run.id IS NULL AND redrive.started_at IS NULL AND redrive.state = 'cancelled')
     OR run.id IS NOT NULL AND run.ended_at IS DISTINCT FROM redrive.ended_at ORDER BY 1`,
)

export const runs: Invariant = {
  id: 'R1',
  promise: 'a run has done no more than it expected, and one that is not running is nobody’s',
  rows: () => 0,
  async *check({ session }) {
    for (const { id, kind, state, expected, looked, owner } of await session.rows<FoundRow>(readWrong))
      yield {
        what: `run ${id} is ${state}, has done ${looked} of ${expected ?? 'any number'} and is ${owner === null ? 'nobody’s' : 'a server’s'}`,
        row: { run: id, kind, state },
      }
    for (const row of await session.rows<FoundRow>(readApart))
      yield {
        what: `redrive ${row.redrive} is ${row.state ?? 'not there'}, and its run ${row.run ?? 'is not there'}`,
        row,
      }
  },
}
