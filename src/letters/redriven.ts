/**
 * Letters of redrives that leave over a network: which redrive a letter leaves for is on file before its first byte does, because
 * nothing else can be written in the same moment. Who finds such a letter later can tell whether it went.
 */
import { type Session, sql, type Transaction } from '../db/database.ts'
import type { LetterId, RedriveRef } from './letter.ts'

/** One row by primary key, when it says something else. */
const nameOne = sql(
  'letters.nameRedrive',
  'UPDATE bartleby.letters SET redrive = $2 WHERE id = $1 AND redrive IS DISTINCT FROM $2',
)

/** A locked letter is about to leave, for this redrive or for nobody's: what becomes of it counts for that one. */
export async function nameRedrive(
  tx: Transaction,
  letter: LetterId,
  redrive: RedriveRef | undefined,
): Promise<void> {
  await tx.run(nameOne, letter, redrive?.number ?? null)
}

/** One row by primary key, when nothing has happened to it. */
const unnameOne = sql(
  'letters.unnameRedrive',
  'UPDATE bartleby.letters SET redrive = NULL WHERE id = $1 AND redrive = $2 AND version = $3',
)

/** A letter of this version did not leave, as far as anybody knows. */
export async function unnameRedrive(
  session: Session,
  letter: LetterId,
  version: number,
  redrive: Pick<RedriveRef, 'number'>,
): Promise<void> {
  await session.run(unnameOne, letter, redrive.number, version)
}

const AFTER = 'letter_id = $1 AND correlation_id IS NOT NULL AND letter_version > $2'

/** The history of one letter, on history_of_letter. */
const findSend = sql('letters.sentForRedrive', {
  postgres: `SELECT 1 AS sent FROM bartleby.history WHERE ${AFTER} AND position(convert_to($3, 'UTF8') IN output) > 0 LIMIT 1`,
  sqlite: `SELECT 1 AS sent FROM history WHERE ${AFTER} AND instr(output, CAST($3 AS BLOB)) > 0 LIMIT 1`,
})

/** Whether history says that this redrive sent the letter, whatever was done to it since it had this version. */
export async function wasSentFor(
  session: Session,
  letter: LetterId,
  version: number,
  { id }: Pick<RedriveRef, 'id'>,
): Promise<boolean> {
  return (await session.rows(findSend, letter, version, `"redrive":"${id}"`)).length > 0
}
