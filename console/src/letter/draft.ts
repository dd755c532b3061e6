/** An edit that was not sent yet: kept for the tab, so that a reload loses nothing. */
import { nameOf } from '../acts/letter-name.ts'
import type { LetterKey } from '../api/types.ts'

export interface Draft {
  readonly typed: string
  readonly notes: string
  /** Of the letter it was made from. */
  readonly version: number
}

const keptAs = (letter: LetterKey): string => `bartleby.draft ${nameOf(letter)}`

export function keptDraft(letter: LetterKey): Draft | null {
  try {
    // Written by `keepDraft`.
    return JSON.parse(sessionStorage.getItem(keptAs(letter)) ?? 'null') as Draft | null
  } catch {
    return null
  }
}

export function keepDraft(letter: LetterKey, draft: Draft): void {
  try {
    sessionStorage.setItem(keptAs(letter), JSON.stringify(draft))
  } catch {
    // There is no room: the warning before leaving is all there is then.
  }
}

export const dropDraft = (letter: LetterKey): void => sessionStorage.removeItem(keptAs(letter))
