/** An error in one line. */
import type { LetterItem } from '../api/types.ts'
import { visible } from '../kit/visible.ts'

/** Class and first line of the message; the class once, where the message begins with it. */
export function errorLine({
  errorClass,
  errorMessage,
}: Pick<LetterItem, 'errorClass' | 'errorMessage'>): string {
  const line = visible(errorMessage.split(/\r?\n/, 1)[0] ?? '')
  if (errorClass === '' || line.startsWith(errorClass)) return line === '' ? 'No message' : line
  return line === '' ? visible(errorClass) : `${visible(errorClass)}: ${line}`
}
