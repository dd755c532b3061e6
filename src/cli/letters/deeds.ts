/** What can be done to a letter: send it back, discard it, make it pending again; in the words that sentences need. */
import type { LetterKey, LetterStatus } from '../../client/letter-types.ts'
import type { OfficeServer } from '../office-call.ts'

export interface Deed {
  readonly name: 'retry' | 'discard' | 'restore'
  /** "This will {will} 12 letters." */
  readonly will: string
  /** "12 were {was}." */
  readonly was: string
  /** While it runs. */
  readonly during: string
  /** The statuses that a letter may have before it. */
  readonly from: readonly LetterStatus[]
  perform(office: OfficeServer, letter: LetterKey, notes: string | undefined): Promise<unknown>
}

export const RETRY: Deed = {
  name: 'retry',
  will: 'send back',
  was: 'sent back',
  during: 'sending back',
  from: ['Pending'],
  perform: ({ letters }, letter, notes) => letters.retry(letter, notes === undefined ? {} : { notes }),
}

export const DISCARD: Deed = {
  name: 'discard',
  will: 'discard',
  was: 'discarded',
  during: 'discarding',
  from: ['Pending'],
  perform: ({ letters }, letter, notes = '') => letters.discard(letter, notes),
}

export const RESTORE: Deed = {
  name: 'restore',
  will: 'restore',
  was: 'restored',
  during: 'restoring',
  from: ['Resolved', 'Expired'],
  perform: ({ letters }, letter, notes) => letters.restore(letter, notes),
}
