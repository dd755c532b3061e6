/** Ids, names and tokens: what clients may choose. */
import { hasControlCharacter } from '../../../core/content.ts'
import { Refused } from '../refusal.ts'

const MOST_CHARACTERS = 255

/** Whether a text can be stored and found again: not too long, no U+0000, no half characters. */
export const isStorable = (text: string): boolean =>
  // A character has one or two units: only what lies between has to be counted.
  text.length <= 2 * MOST_CHARACTERS &&
  (text.length <= MOST_CHARACTERS || [...text].length <= MOST_CHARACTERS) &&
  !text.includes('\0') &&
  text.isWellFormed()

/** Refuses texts that cannot be stored. */
export function checkTexts(...texts: readonly string[]): void {
  if (!texts.every(isStorable)) throw new Refused('text_invalid')
}

/** Refuses ids and names that would not be shown as they are. */
export function checkNames(...names: readonly string[]): void {
  if (names.some(hasControlCharacter)) throw new Refused('name_invalid')
}

/** What was given; null when nothing was, also for the empty text. */
export const given = (text: string | null | undefined): string | null =>
  text === null || text === undefined || text === '' ? null : text
