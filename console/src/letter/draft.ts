/** An edit that was not sent yet: kept for the tab, so that a reload loses nothing. */
import { nameOf } from '../acts/letter-name.ts'
import type { LetterKey } from '../api/types.ts'
import { keep, kept } from '../kit/kept.ts'

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
    return JSON.parse(kept('tab', keptAs(letter)) ?? 'null') as Draft | null
  } catch {
    return null
  }
}

export function keepDraft(letter: LetterKey, draft: Draft): void {
  // Where there is no room, the warning before leaving is all there is.
  keep('tab', keptAs(letter), JSON.stringify(draft))
}

export const dropDraft = (letter: LetterKey): void => keep('tab', keptAs(letter), null)
