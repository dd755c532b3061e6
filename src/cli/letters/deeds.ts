/** What can be done to letters: send them back, discard them, make them pending again. */
import type { LetterKey, LetterStatus } from '../../client/letter-types.ts'
import type { OfficeServer } from '../office-call.ts'

export interface Deed {
  readonly name: 'retry' | 'discard' | 'restore'
  /** The statuses that a letter may have before it. */
  readonly from: readonly LetterStatus[]
}

/** One that is done to a single letter by one call. */
export interface SingleDeed extends Deed {
  /** "It was {was}." */
  readonly was: string
  perform(office: OfficeServer, letter: LetterKey, notes: string | undefined): Promise<unknown>
}

export const RETRY: Deed = { name: 'retry', from: ['Pending'] }

export const DISCARD: SingleDeed = {
  name: 'discard',
  was: 'discarded',
  from: ['Pending'],
  perform: ({ letters }, letter, notes = '') => letters.discard(letter, notes),
}

export const RESTORE: SingleDeed = {
  name: 'restore',
  was: 'restored',
  from: ['Resolved', 'Expired'],
  perform: ({ letters }, letter, notes) => letters.restore(letter, notes),
}
