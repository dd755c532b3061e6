/**
 * Erasing pending letters for users of their source. Counts keep how many; history has one row per call, or one per run that each of
 * its transactions updates. `verify` compares both with the letters that are gone.
 */

import { type Instant, instant } from '../core/clock.ts'
import { storableText } from '../core/content.ts'
import { elapsedMs, type HistoryRow, keepRunRow, operationKindNumber } from '../history/record.ts'
import { sql, type Transaction } from '../store/database.ts'
import { big, integer, rowShape } from '../store/row.ts'
import { change, NOBODY } from './change.ts'
import type { LetterId } from './letter.ts'
import { TRANSITIONS } from './transitions.ts'
import type { OfficeWork } from './work.ts'

/** The engine of its history row is that of the letters. */
export const ERASE_OPERATION = TRANSITIONS.erase.word

export interface Erasure {
  readonly engine: string
  /** Locked and pending. */
  readonly letters: readonly LetterId[]
  /** When the newest became pending: the history row is not older, so it outlives theirs. */
  readonly pendingSince: Instant
  /** One of many erasures under the same, unique correlation id. */
  readonly isRun: boolean
  readonly correlationId: string
  readonly instanceId: string | null
  readonly actor: string
  readonly notes: string
}

const RUN_ROW = rowShape({
  series: integer,
  createdAt: big,
  id: big,
  output: (bytes: Uint8Array | null) => bytes,
})

/** The newest row of a run, on history_by_correlation. */
const readRunRow = sql(
  'letters.erasureOfRun',
  `SELECT ${RUN_ROW.columns} FROM bartleby.history WHERE correlation_id = $1
   ORDER BY created_at DESC, id DESC LIMIT 1`,
  { bigints: true },
)

export async function eraseLetters(work: OfficeWork, erasure: Erasure): Promise<void> {
  const { letters, engine } = erasure
  if (letters.length === 0) return
  await change(
    work,
    'erase',
    letters.map((id) => ({ id, engine })),
    NOBODY,
  )
  await record(work, erasure, letters.length)
}

async function record(work: OfficeWork, erasure: Erasure, erased: number): Promise<void> {
  const { tx, now } = work
  const { engine, correlationId, instanceId, actor, notes } = erasure
  const known = erasure.isRun ? await rowOfRun(tx, erasure) : null
  const createdAt = known === null ? now : instant(known.row.createdAt)
  await keepRunRow(tx, known?.row ?? null, {
    engine,
    operation: ERASE_OPERATION,
    status: 'Succeeded',
    instanceId,
    correlationId,
    createdAt,
    durationMs: known === null ? 0 : elapsedMs(createdAt, now),
    actor: storableText(actor),
    notes: storableText(notes),
    output: Buffer.from(JSON.stringify({ letters: { [engine]: (known?.erased ?? 0) + erased } })),
  })
}

/** The row that this erasure adds to; null: it gets its own. */
async function rowOfRun(
  tx: Transaction,
  { engine, correlationId, pendingSince }: Erasure,
): Promise<{ readonly row: HistoryRow; readonly erased: number } | null> {
  const series = await operationKindNumber(tx, engine, ERASE_OPERATION, 'Succeeded')
  const row = await RUN_ROW.one(tx, readRunRow, correlationId)
  if (row === null || row.series !== series || row.createdAt < pendingSince) return null
  return { row, erased: erasedAs(row.output, engine) }
}

function erasedAs(output: Uint8Array | null, engine: string): number {
  // Written by `record`.
  const told = JSON.parse(Buffer.from(output ?? '{}').toString()) as { letters?: Record<string, number> }
  return told.letters?.[engine] ?? 0
}
