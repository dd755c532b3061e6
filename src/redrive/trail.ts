/** What history keeps of redrives: a row for everything that was done to one, under the id of the redrive. */

import { said } from '../core/content.ts'
import { recordHistory } from '../history/record.ts'
import { OFFICE, type RedriveAct } from '../letters/letter.ts'
import type { OfficeWork } from '../letters/work.ts'
import type { StoredRedrive } from './rows.ts'
import { readStandings } from './standing.ts'

/** Files what was done to a redrive, with its counts at that moment. */
export async function recordAct(
  work: OfficeWork,
  redrive: StoredRedrive,
  { act, actor, notes }: { readonly act: RedriveAct; readonly actor: string; readonly notes: string | null },
): Promise<void> {
  const [standing] = await readStandings(work.tx, [redrive])
  await recordHistory(work.tx, [
    {
      engine: OFFICE,
      operation: `redrive.${act}`,
      status: 'Succeeded',
      instanceId: null,
      correlationId: redrive.id,
      createdAt: work.now,
      durationMs: 0,
      actor: said(actor),
      notes: said(notes),
      output: Buffer.from(JSON.stringify({ action: redrive.action, ...standing?.counts })),
    },
  ])
}
