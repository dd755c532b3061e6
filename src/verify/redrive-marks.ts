/** Letters that name the redrive which sent them: it did, and says so. */
import { type Integer, sql } from '../db/database.ts'
import { KAFKA } from '../kafka/event.ts'
import type { Audit, Finding } from './invariant.ts'
import { letterRanges } from './walk.ts'

/** Whether a letter is behind the place of its lane. */
const IS_BEHIND = '(member.captured_at, member.letter) <= (lane.at_captured, lane.at_letter)'

/**
 * Letters of a range whose redrive has not sent them: one look into redrive_letters_of for every letter with a redrive. Of a redrive
 * that was forgotten nothing is known.
 */
const readStrangers = sql(
  'verify.redriveStrangers',
  `SELECT letter.id, letter.engine, letter.source_id, letter.redrive, known.id AS redrive_id
   FROM bartleby.letters AS letter JOIN bartleby.redrives AS known ON known.number = letter.redrive AND known.state NOT IN ('planning', 'forgotten')
   WHERE letter.id > $1 AND letter.id <= $2 AND letter.redrive IS NOT NULL AND NOT EXISTS (
     SELECT 1 FROM bartleby.redrive_letters AS member
     JOIN bartleby.redrive_lanes AS lane ON lane.redrive = member.redrive AND lane.lane = member.lane
     WHERE member.letter = letter.id AND member.redrive = letter.redrive AND ${IS_BEHIND}
       AND NOT EXISTS (SELECT 1 FROM bartleby.redrive_exceptions AS exception
         WHERE exception.redrive = member.redrive AND exception.letter = member.letter))`,
  { bigints: true },
)

/** Whether a letter is the next one of a lane whose letters leave over a network: such a letter is marked before it leaves. */
const readNext = sql(
  'verify.redriveNext',
  `SELECT 1 AS next FROM bartleby.redrive_letters AS member
   JOIN bartleby.redrive_lanes AS lane ON lane.redrive = member.redrive AND lane.lane = member.lane
   WHERE member.letter = $1 AND member.redrive = $2 AND lane.source = '${KAFKA}' AND NOT EXISTS (
     SELECT 1 FROM bartleby.redrive_letters AS other
     WHERE other.redrive = member.redrive AND other.lane = member.lane
       AND (other.captured_at, other.letter) > (lane.at_captured, lane.at_letter)
       AND (other.captured_at, other.letter) < (member.captured_at, member.letter))`,
)

interface Stranger {
  readonly id: Integer
  readonly engine: string
  readonly source_id: string
  readonly redrive: Integer
  readonly redrive_id: string
}

export async function* redriveMarks(audit: Audit): AsyncGenerator<Finding> {
  const { session } = audit
  for await (const { after, through } of letterRanges(audit)) {
    for (const letter of await session.rows<Stranger>(readStrangers, after, through)) {
      if ((await session.rows(readNext, letter.id, letter.redrive)).length > 0) continue
      yield {
        what: `letter ${letter.id} says that redrive ${letter.redrive_id} sent it, which has not`,
        row: {
          redrive: letter.redrive_id,
          letter: String(letter.id),
          engine: letter.engine,
          sourceId: letter.source_id,
        },
      }
    }
  }
}
