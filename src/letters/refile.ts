/**
 * Refiling: a letter turns out to come from another queue than it was filed under. It stays what it is, in another drawer: a
 * transition like every other, with its counts and one history row.
 */
import { type Integer, sql } from '../db/database.ts'
import { recordHistory } from '../history/record.ts'
import type { Registers } from './death-note.ts'
import { isUnconfirmed, type Letter, STATUS } from './letter.ts'
import { said, type Trace } from './transition.ts'
import type { OfficeWork } from './work.ts'

/** One row by primary key. */
const readDrawer = sql('letters.drawerOf', 'SELECT drawer FROM bartleby.letters WHERE id = $1')

/** One row by primary key, and only in the version in which it was locked. */
const moveLetter = sql(
  'letters.refile',
  'UPDATE bartleby.letters SET drawer = $3, version = version + 1 WHERE id = $1 AND version = $2',
)

/** Files a locked letter under another queue; gives the letter as it is now. */
export async function refileLetter(
  work: OfficeWork,
  { drawers }: Registers,
  letter: Letter,
  queue: string,
  trace: Omit<Trace, 'act'> & { readonly operation: string },
): Promise<Letter> {
  const { tx, now } = work
  const [row] = await tx.rows<{ drawer: Integer }>(readDrawer, letter.id)
  const drawer = await drawers.numberOf(work, {
    source: letter.source,
    engine: letter.engine,
    queue,
    // Known: the letter lies under it.
    signature: { fingerprint: letter.signature, errorClass: letter.errorClass, title: letter.errorMessage },
    failedAt: letter.lastFailureAt,
  })
  const moved = await tx.run(moveLetter, letter.id, letter.version, drawer)
  if (row === undefined || moved === 0) throw new Error(`letter ${letter.id} changed although it was locked`)
  const status = STATUS[letter.status]
  work.letters.add(Number(row.drawer), status, -1)
  work.letters.add(drawer, status, 1, letter.lastFailureAt)
  if (isUnconfirmed(letter)) {
    work.letters.add(Number(row.drawer), STATUS.unconfirmed, -1)
    work.letters.add(drawer, STATUS.unconfirmed, 1)
  }
  const version = letter.version + 1
  await recordHistory(tx, [
    {
      engine: letter.engine,
      operation: trace.operation,
      status: 'Succeeded',
      instanceId: letter.instanceId === letter.correlationId ? null : letter.instanceId,
      correlationId: letter.correlationId,
      createdAt: now,
      durationMs: 0,
      letterId: letter.id,
      letterVersion: version,
      actor: said(trace.actor),
      notes: said(trace.notes),
      input: trace.input ?? null,
      output: trace.output ?? null,
    },
  ])
  return { ...letter, version, originalQueue: queue === '' ? null : queue }
}
