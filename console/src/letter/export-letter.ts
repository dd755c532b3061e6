/** A letter as a file. */
import type { LetterDetail } from '../api/types.ts'
import { saveFile } from '../kit/save-file.ts'

/** Lets the browser save the letter with everything on file about it, as JSON. */
export function exportLetter(letter: LetterDetail): void {
  const name = `${letter.engine}-${letter.rowKey}.json`.replace(/[^\w.-]+/g, '_')
  saveFile(name, 'application/json', JSON.stringify(letter, null, 2))
}
