/** Dead rows become letters, many in one transaction. The rows stay where they are: they are the way back. */
import { type Instant, later } from '../../core/clock.ts'
import { base64, textBytes } from '../../core/content.ts'
import {
  type CapturedRow,
  capture,
  captureStatement,
  countCaptured,
  freeKeyTime,
  noteList,
} from '../../letters/capture.ts'
import { fileCaseFailures } from '../../letters/confirm.ts'
import { type DeathNote, noteDeath, type Registers } from '../../letters/death-note.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import type { OfficeWork } from '../../letters/work.ts'
import type { OutboxRow } from '../sql/letters.ts'
import { correlationOf, deathOf, diedAt, earlierFailuresOf, headersOf } from './death.ts'
import { OUTBOX, type RowAndLetter } from './rows-of-letters.ts'

/** Files what it is given, one note for each; letters are numbered in the order given. */
const captureMany = captureStatement(
  'outbox.capture',
  `taken AS MATERIALIZED (
     SELECT nextval('bartleby.letter_ids') AS letter_id, given.note, given.source_id, false AS skipped,
       given.created_at AS item_created_at, NULL::bigint AS laid_at, NULL::bigint AS serial, NULL::int AS part,
       given.dequeue_count, NULL::int AS partition, NULL::text AS dead_queue, NULL::bytea AS encoding,
       decode(given.kind, 'base64') AS kind, decode(given.reference, 'base64') AS reference,
       decode(given.headers, 'base64') AS headers, decode(given.payload, 'base64') AS payload
     FROM jsonb_to_recordset($2::jsonb) AS given (
       note int, source_id text, created_at bigint, dequeue_count int, kind text, reference text, headers text, payload text)
   )`,
)

/** Captures rows of an outbox that have no letter; gives their letters by the ids of the rows. */
export async function captureRows(
  work: OfficeWork,
  registers: Registers,
  outbox: string,
  rows: readonly RowAndLetter[],
): Promise<ReadonlyMap<string, LetterId>> {
  if (rows.length === 0) return new Map()
  const notes = await notesOf(work, registers, outbox, rows)
  const captureNoted = work.tx.dialect === 'postgres' ? captureAll : captureEach
  const letters = await captureNoted(work, notes, rows)
  const filed = rows.flatMap(({ row }) => ({ row, letterId: letters.get(row.id) ?? null }))
  await fileEarlierFailures(work, outbox, filed)
  return letters
}

/** The failures of a row before it died join those of its letter, which has been captured or reopened. */
export async function fileEarlierFailures(
  work: OfficeWork,
  outbox: string,
  rows: readonly { readonly row: OutboxRow; readonly letterId: LetterId | null }[],
): Promise<void> {
  const failures = rows.flatMap(({ row, letterId: caseId }) =>
    caseId === null
      ? []
      : earlierFailuresOf(row, diedAt(row, work.now)).map((failure) => ({
          ...failure,
          caseId,
          failedBy: outbox,
          errorStack: null,
          correlationId: correlationOf(row),
        })),
  )
  await fileCaseFailures(work, failures)
}

async function captureAll(work: OfficeWork, notes: readonly DeathNote[], rows: readonly RowAndLetter[]) {
  const given = rows.map(({ row, sourceId }, i) => ({
    note: i + 1,
    source_id: sourceId,
    // As text: JSON numbers would lose the digits beyond 2^53.
    created_at: row.createdAt.toString(),
    dequeue_count: row.retryCount,
    kind: base64(textBytes(row.eventType)),
    reference: base64(textBytes(row.key)),
    headers: base64(headersOf(row)),
    payload: base64(row.payload.length === 0 ? null : row.payload),
  }))
  const captured = await work.tx.rows<CapturedRow>(captureMany, noteList(notes), JSON.stringify(given))
  countCaptured(work, notes, captured)
  const letters = new Map<string, LetterId>()
  for (const { note, first } of captured) {
    const place = rows[Number(note) - 1]
    if (place !== undefined && first !== null) letters.set(place.row.id, letterId(first))
  }
  return letters
}

async function captureEach(work: OfficeWork, notes: readonly DeathNote[], rows: readonly RowAndLetter[]) {
  const letters = new Map<string, LetterId>()
  for (const [i, { row, sourceId }] of rows.entries()) {
    const note = notes[i]
    if (note === undefined) continue
    const id = await capture(work, note, {
      caseId: null,
      sourceId,
      itemCreatedAt: row.createdAt,
      dequeueCount: row.retryCount,
      partition: null,
      grave: null,
      encoding: null,
      kind: textBytes(row.eventType),
      reference: textBytes(row.key),
      headers: headersOf(row),
      payload: row.payload.length === 0 ? null : row.payload,
    })
    if (id !== null) letters.set(row.id, id)
  }
  return letters
}

/** Letters of one tenant are captured one microsecond after the other: the time is part of their keys. */
async function notesOf(
  work: OfficeWork,
  registers: Registers,
  outbox: string,
  rows: readonly RowAndLetter[],
): Promise<DeathNote[]> {
  const next = new Map<string, Instant>()
  const notes: DeathNote[] = []
  for (const { row } of rows) {
    const death = deathOf(outbox, row, 'capture')
    const instance = death.instanceId ?? ''
    const capturedAt = next.get(instance) ?? (await freeKeyTime(work.tx, OUTBOX, instance, work.now))
    next.set(instance, later(capturedAt, 1n))
    const lastFailureAt = diedAt(row, work.now)
    const firstFailureAt = earlierFailuresOf(row, lastFailureAt)[0]?.failedAt ?? lastFailureAt
    notes.push(await noteDeath(work, registers, death, { capturedAt, firstFailureAt, lastFailureAt }))
  }
  return notes
}
