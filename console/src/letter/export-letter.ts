/** A letter as a file. */
import type { LetterDetail } from '../api/types.ts'

/** Lets the browser save the letter with everything on file about it, as JSON. */
export function exportLetter(letter: LetterDetail): void {
  const file = new Blob([JSON.stringify(letter, null, 2)], { type: 'application/json' })
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = `${letter.engine}-${letter.rowKey}.json`.replace(/[^\w.-]+/g, '_')
  link.click()
  URL.revokeObjectURL(link.href)
}
