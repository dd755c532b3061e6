/** An error in one line. */
import type { LetterItem } from '../api/types.ts'

/** Class and first line of the message; the class once, where the message begins with it. */
export function errorLine({
  errorClass,
  errorMessage,
}: Pick<LetterItem, 'errorClass' | 'errorMessage'>): string {
  const line = errorMessage.split(/\r?\n/, 1)[0] ?? ''
  if (errorClass === '' || line.startsWith(errorClass)) return line === '' ? 'No message' : line
  return line === '' ? errorClass : `${errorClass}: ${line}`
}
