/**
 * I10: of every redrive, planned = sent + skipped + failed + remaining, and each number is what its letters say: the lane has as many
 * as were planned, and is past as many as it counts; those that it left out are noted; each of the others was sent, once, which
 * history has; and no more were heard of than were sent.
 */
import { KAFKA } from '../kafka/event.ts'
import type { Invariant } from './invariant.ts'
import { redriveLanes } from './redrive-lanes.ts'
import { fault, faultsAlong, LETTERS } from './walk.ts'

/**
 * Letters of a range whose redrive has not sent them: one look into redrive_letters_of, which the plus insists on, for every letter
 * with a redrive. Of a redrive that was forgotten nothing is known. The next letter of a lane whose letters leave over a network is
 * marked before it leaves.
 */
const strangers = fault(
  'redriveStrangers',
  `SELECT known.id AS redrive, letter.id AS letter, letter.engine, letter.source_id AS "sourceId"
   FROM bartleby.letters AS letter JOIN bartleby.redrives AS known ON known.number = letter.redrive AND known.state NOT IN ('planning', 'forgotten')
   WHERE letter.id > $1 AND letter.id <= $2 AND letter.redrive IS NOT NULL AND (
     SELECT 1 FROM bartleby.redrive_letters AS member
     JOIN bartleby.redrive_lanes AS lane ON lane.redrive = member.redrive AND lane.lane = member.lane
     WHERE member.letter = letter.id AND +member.redrive = letter.redrive AND (
       ((member.captured_at, member.letter) <= (lane.at_captured, lane.at_letter)
         AND NOT EXISTS (SELECT 1 FROM bartleby.redrive_exceptions AS exception
           WHERE exception.redrive = member.redrive AND exception.letter = member.letter))
       OR (lane.source = '${KAFKA}' AND NOT EXISTS (SELECT 1 FROM bartleby.redrive_letters AS other
         WHERE other.redrive = member.redrive AND other.lane = member.lane
           AND (other.captured_at, other.letter) > (lane.at_captured, lane.at_letter)
           AND (other.captured_at, other.letter) < (member.captured_at, member.letter)))) LIMIT 1) IS NULL`,
  ({ letter, redrive }) => `letter ${letter} says that redrive ${redrive} sent it, which has not`,
)

export const redrives: Invariant = {
  id: 'I10',
  promise:
    'a redrive has sent, skipped and failed as many letters as it says, each once, and the others remain',
  rows: ({ letters, redriven }) => (redriven === 0 ? 0 : letters + redriven),
  async *check(audit) {
    yield* redriveLanes(audit)
    yield* faultsAlong(audit, LETTERS, [strangers])
  },
}
