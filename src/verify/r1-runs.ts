/**
 * R1: a run has done no more than it expected, and one that is over is nobody's. The run of a redrive is what the redrive is, and counts
 * what its lanes do.
 */

import { RUN_STATES } from '../redrive/commands.ts'
import { PLAN_RUN, REDRIVE_RUN } from '../redrive/redrive.ts'
import { KAFKA } from '../sources/kafka/event.ts'
import type { Audit, Finding, FoundRow, Invariant } from './invariant.ts'
import { batchesOf, read, together } from './walk.ts'

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

const readNumbers = read('redriveNumbers', 'SELECT number AS key, id FROM bartleby.redrives ORDER BY number')

/** Along the primary key. `late`: lanes whose letters leave over a network, of which one may be counted after a pause. */
const readLaneSums = read(
  'laneSums',
  `SELECT redrive AS key, sum(planned) AS expected, sum(sent) AS done, sum(skipped) AS skipped, sum(failed) AS failed,
     sum(CASE WHEN source = '${KAFKA}' THEN 1 ELSE 0 END) AS late
   FROM bartleby.redrive_lanes GROUP BY redrive ORDER BY redrive`,
)

const readRedriveRuns = read(
  'redriveRuns',
  `SELECT id, state, expected, done, skipped, failed FROM bartleby.runs WHERE kind = '${REDRIVE_RUN}'`,
)

const COUNTS = ['done', 'skipped', 'failed'] as const

/** Runs of redrives that count something else than the lanes. While one is running, its server notes a few times a second how far it is. */
async function* countedApart(audit: Audit): AsyncGenerator<Finding> {
  const runs = new Map<string, FoundRow>()
  for await (const rows of batchesOf(audit, readRedriveRuns))
    for (const run of rows) runs.set(`${run.id}`, run)
  const sides = { redrives: { statement: readNumbers }, lanes: { statement: readLaneSums } }
  for await (const { redrives, lanes } of together(audit, sides)) {
    const [redrive, [counted]] = [redrives[0]?.id, lanes]
    const run = runs.get(`${redrive}`)
    if (run === undefined || counted === undefined) continue
    const behind = COUNTS.map((count) => Number(counted[count]) - Number(run[count]))
    const isLate = run.state === 'running' || behind.reduce((sum, each) => sum + each) <= Number(counted.late)
    if (isLate && behind.every((each) => each >= 0) && Number(run.expected) === Number(counted.expected))
      continue
    const told = (row: FoundRow) =>
      `${row.done} sent, ${row.skipped} skipped and ${row.failed} failed letters of ${row.expected}`
    yield {
      what: `redrive ${redrive} has ${told(counted)}, and its run counts ${told(run)}`,
      row: {
        redrive,
        lanes: COUNTS.map((count) => counted[count]).join(),
        run: COUNTS.map((count) => run[count]).join(),
      },
    }
  }
}

export const runs: Invariant = {
  id: 'R1',
  promise: 'a run has done no more than it expected, and one that is not running is nobody’s',
  async *check(audit) {
    const { session } = audit
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
    yield* countedApart(audit)
  },
}
