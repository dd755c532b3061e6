/** Runs whose steps are transactions of the office; history keeps what people did to them. */
import type { Clock } from '../core/clock.ts'
import { said } from '../core/content.ts'
import type { Log } from '../core/log.ts'
import type { Database } from '../db/database.ts'
import { recordHistory } from '../history/record.ts'
import { Runs } from '../work/runs.ts'
import { OFFICE } from './letter.ts'
import { inOffice, type OfficeWork } from './work.ts'

export type OfficeRuns = Runs<OfficeWork>

/** The runs of an office; each part defines its kinds. */
export const officeRuns = (
  db: Database,
  clock: Clock,
  log: Log,
  { carriesOut = true }: { readonly carriesOut?: boolean } = {},
): OfficeRuns =>
  new Runs({
    db,
    clock,
    log,
    carriesOut,
    inWork: (verb, act) => inOffice(db, clock, verb, act),
    record: async ({ tx, now }, { id, kind, expected, done, skipped, failed }, { act, actor, notes }) => {
      await recordHistory(tx, [
        {
          engine: OFFICE,
          operation: `run.${act}`,
          status: 'Succeeded',
          instanceId: null,
          correlationId: id,
          createdAt: now,
          durationMs: 0,
          actor: said(actor),
          notes: said(notes),
          output: Buffer.from(JSON.stringify({ kind, expected, done, skipped, failed })),
        },
      ])
    },
  })
