/**
 * What an operator makes of a letter without sending it: discard and expire it, and restore it from either. A letter
 * that was retried can be restored until its item is being worked on: the item is taken back first.
 */
import { change } from './change.ts'
import { readLetterById } from './detail.ts'
import { isUnconfirmed, type Letter, type LetterStatus, type RedriveRef, STATUS, sentBy } from './letter.ts'
import { type LetterSource, restoreLetters } from './source.ts'
import { insistOnStatus } from './transitions.ts'
import type { OfficeWork } from './work.ts'

export interface Change {
  readonly status: LetterStatus
  /** Blank ones are none. */
  readonly notes: string | null
  readonly actor: string
  /** The redrive that discards it; left out: none does. */
  readonly redrive?: RedriveRef
}

/** Gives a locked letter another status; gives the letter as it is then. */
export async function changeLetter(
  work: OfficeWork,
  source: LetterSource,
  letter: Letter,
  { status, notes, actor, redrive }: Change,
): Promise<Letter> {
  const { id, engine } = letter
  const how = { actor, notes: notes?.trim() === '' ? null : notes }
  switch (status) {
    case 'Resolved': {
      insistOnStatus(letter, 'discard')
      await source.moved(work, [letter], 'discard')
      const details = redrive === undefined ? {} : { details: sentBy(redrive) }
      await change(work, 'discard', [{ id, engine, ...details }], { ...how, redrive })
      break
    }
    case 'Expired':
      insistOnStatus(letter, 'expire')
      await source.moved(work, [letter], 'expire')
      await change(work, 'expire', [{ id, engine }], how)
      break
    case 'Pending': {
      insistOnStatus(letter, 'restore')
      const before = { ...letter, status: STATUS[letter.status] }
      const restoring = { ...letter, before, isUnconfirmed: isUnconfirmed(letter) }
      const [refused] = await restoreLetters(work, source, [restoring], how)
      if (refused !== undefined) throw refused.refusal
    }
  }
  const changed = await readLetterById(work.tx, id)
  if (changed === null) throw new Error(`letter ${id} is gone although it was locked`)
  return changed
}
