/**
 * I10: of every redrive, planned = sent + skipped + failed + remaining, and each number is what its letters say: the lane has as many
 * as were planned, and is past as many as it counts; those that it left out are noted; each of the others was sent, once, which
 * history has; no letter says that it was sent and was not; and no more were heard of than were sent.
 */
import type { Invariant } from './invariant.ts'
import { redriveLanes } from './redrive-lanes.ts'

export const redrives: Invariant = {
  id: 'I10',
  promise:
    'a redrive has sent, skipped and failed as many letters as it says, each once, and the others remain',
  ofLetters: redriveLanes,
  rows: () => 0,
}
