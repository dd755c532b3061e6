/** JSON Pointers (RFC 6901): '/orders/0/a~1b' is the member 'a/b' of the first of the orders. */

/** More steps than this no pointer has, and no deeper does anything here look. */
export const MOST_LEVELS = 512

/** What is wrong with a pointer; null when nothing is. */
export function pointerProblem(pointer: string): string | null {
  if (pointer !== '' && !pointer.startsWith('/')) return `it must be empty or begin with '/'`
  if (/~(?![01])/.test(pointer)) return `'~' must be followed by 0 (for '~') or 1 (for '/')`
  if (stepsOf(pointer).length > MOST_LEVELS) return `it has more than ${MOST_LEVELS} steps`
  return null
}

/** The names and numbers that it leads along. */
export const stepsOf = (pointer: string): readonly string[] => pointer.split('/').slice(1).map(unescapeStep)

const unescapeStep = (step: string): string => step.replaceAll('~1', '/').replaceAll('~0', '~')

/** The pointer to a member or element of what `pointer` leads to. */
export const pointerBelow = (pointer: string, step: string | number): string =>
  `${pointer}/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`

/** Whether it leads to something within what `other` leads to. */
export const isBelow = (pointer: string, other: string): boolean => pointer.startsWith(`${other}/`)

/** The number of an element; null when the step is none. */
export const elementNumber = (step: string): number | null =>
  /^(?:0|[1-9]\d{0,9})$/.test(step) ? Number(step) : null

const MOST_SHOWN = 200

/** A pointer in a sentence. */
export function showPointer(pointer: string): string {
  if (pointer === '') return 'the whole payload'
  return pointer.length > MOST_SHOWN ? `${pointer.slice(0, MOST_SHOWN)}…` : pointer
}
