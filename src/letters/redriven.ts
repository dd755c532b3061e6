/**
 * Letters of redrives that leave over a network: which redrive a letter leaves for is on file before its first byte does (the act
 * `intend`), because nothing else can be written in the same moment. Who finds such a letter later can tell whether it went.
 */
import { type Session, sql } from '../store/database.ts'
import { change, NOBODY } from './change.ts'
import type { LetterId, RedriveRef } from './letter.ts'
import { lockCandidates } from './lists/candidates.ts'
import type { OfficeWork } from './work.ts'

/** A letter of this version did not leave, as far as anybody knows. Nothing happens when something has happened to it. */
export async function forgoRedrive(
  work: OfficeWork,
  id: LetterId,
  version: number,
  redrive: Pick<RedriveRef, 'number'>,
): Promise<void> {
  const letter = (await lockCandidates(work.tx, [id])).get(id)
  const isSame = letter?.version === version && letter.redrive === redrive.number
  if (letter !== undefined && isSame) await change(work, 'forgo', [letter], NOBODY)
}

const AFTER = 'letter_id = $1 AND correlation_id IS NOT NULL AND letter_version > $2'

/** The history of one letter, on history_of_letter. */
const findSend = sql(
  'letters.sentForRedrive',
  `SELECT 1 AS sent FROM bartleby.history WHERE ${AFTER} AND position(convert_to($3, 'UTF8') IN output) > 0 LIMIT 1`,
)

/** Whether history says that this redrive sent the letter, whatever was done to it since it had this version. */
export async function wasSentFor(
  session: Session,
  letter: LetterId,
  version: number,
  { id }: Pick<RedriveRef, 'id'>,
): Promise<boolean> {
  return (await session.rows(findSend, letter, version, `"redrive":"${id}"`)).length > 0
}
