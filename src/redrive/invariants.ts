/** What `verify` proves of redrives and their runs. */
import type { Audit, Finding, FoundRow, Invariant } from '../letters/audit/invariant.ts'
import { batchesOf, read, together } from '../letters/audit/walk.ts'
import { sourceKinds } from '../letters/kinds.ts'
import { runs } from '../work/invariants.ts'
import { RUN_STATES } from './commands.ts'
import { captureOrder } from './invariants/capture-order.ts'
import { redriveLanes } from './invariants/lanes.ts'
import { PLAN_RUN, REDRIVE_RUN } from './redrive.ts'

export const redriveInvariants: readonly Invariant[] = [captureOrder, redriveLanes]

const states = Object.entries(RUN_STATES).map(([state, run]) => `WHEN '${state}' THEN '${run}'`)

/** Redrives and runs that disagree. A plan dropped after it was made has no run. */
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

/** Along the primary key. `late`: lanes of the sources `$1`, whose letters leave over a network; one each may be counted after a pause. */
const readLaneSums = read(
  'laneSums',
  `SELECT redrive AS key, sum(planned) AS expected, sum(sent) AS done, sum(skipped) AS skipped, sum(failed) AS failed,
     sum(CASE WHEN source = ANY($1::text[]) THEN 1 ELSE 0 END) AS late
   FROM bartleby.redrive_lanes GROUP BY redrive ORDER BY redrive`,
)

const readRedriveRuns = read(
  'redriveRuns',
  `SELECT id, state, expected, done, skipped, failed FROM bartleby.runs WHERE kind = '${REDRIVE_RUN}'`,
)

const COUNTS = ['done', 'skipped', 'failed'] as const

/** Runs that count something else than the lanes. A running one is noted only a few times a second. */
async function* countedApart(audit: Audit): AsyncGenerator<Finding> {
  const byId = new Map<string, FoundRow>()
  for await (const rows of batchesOf(audit, readRedriveRuns))
    for (const run of rows) byId.set(`${run.id}`, run)
  const outside = sourceKinds().flatMap(({ name, sendsOutside }) => (sendsOutside === true ? [name] : []))
  const sides = {
    redrives: { statement: readNumbers },
    lanes: { statement: readLaneSums, values: [outside] },
  }
  for await (const { redrives, lanes } of together(audit, sides)) {
    const [redrive, [counted]] = [redrives[0]?.id, lanes]
    const run = byId.get(`${redrive}`)
    if (run === undefined || counted === undefined) continue
    const behind = COUNTS.map((count) => Number(counted[count]) - Number(run[count]))
    const isLate = run.state === 'running' || behind.reduce((sum, each) => sum + each) <= Number(counted.late)
    if (isLate && behind.every((each) => each >= 0) && Number(run.expected) === Number(counted.expected))
      continue
    const describe = (row: FoundRow) =>
      `${row.done} sent, ${row.skipped} skipped and ${row.failed} failed letters of ${row.expected}`
    yield {
      what: `redrive ${redrive} has ${describe(counted)}, and its run counts ${describe(run)}`,
      row: {
        redrive,
        lanes: COUNTS.map((count) => counted[count]).join(),
        run: COUNTS.map((count) => run[count]).join(),
      },
    }
  }
}

/** R1 of redrives: the run has the state of its redrive and counts what the lanes do. */
export const redriveRuns: Invariant = {
  ...runs,
  async *check(audit) {
    for (const row of await audit.session.rows<FoundRow>(readApart))
      yield {
        what: `redrive ${row.redrive} is ${row.state ?? 'not there'}, and its run ${row.run ?? 'is not there'}`,
        row,
      }
    yield* countedApart(audit)
  },
}
