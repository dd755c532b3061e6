/** Reports that tests file in transactions of their own, about source ids that have no letters yet. */

import type { LetterId } from '../../src/letters/letter.ts'
import type { Registers } from '../../src/letters/registers.ts'
import { captureReports } from '../../src/letters/reports/intake.ts'
import type { FailureReport } from '../../src/letters/reports/report.ts'
import type { OfficeWork } from '../../src/letters/work.ts'

/** The letters of the reports, in their order. */
export async function captureAllNew(
  work: OfficeWork,
  registers: Registers,
  reports: readonly FailureReport[],
): Promise<LetterId[]> {
  const sourceOf = () => {
    throw new Error('a source id has its letter already')
  }
  const nothing = { known: new Map(), queues: new Map() }
  return (await captureReports(work, { registers, sourceOf }, reports, nothing)).map(({ id }) => id)
}

/** The letter of a report. */
export async function captureNew(
  work: OfficeWork,
  registers: Registers,
  report: FailureReport,
): Promise<LetterId> {
  const [id] = await captureAllNew(work, registers, [report])
  if (id === undefined) throw new Error('nothing was captured')
  return id
}
