/** JSON Pointers (RFC 6901): '/orders/0/a~1b' is the member 'a/b' of the first order. */

/** Steps of a pointer, and levels that anything here looks into. */
export const MOST_LEVELS = 512

export function pointerProblem(pointer: string): string | null {
  if (pointer !== '' && !pointer.startsWith('/')) return `it must be empty or begin with '/'`
  if (/~(?![01])/.test(pointer)) return `'~' must be followed by 0 (for '~') or 1 (for '/')`
  if (stepsOf(pointer).length > MOST_LEVELS) return `it has more than ${MOST_LEVELS} steps`
  return null
}

export const stepsOf = (pointer: string): readonly string[] => pointer.split('/').slice(1).map(unescapeStep)

const unescapeStep = (step: string): string => step.replaceAll('~1', '/').replaceAll('~0', '~')

export const pointerBelow = (pointer: string, step: string | number): string =>
  `${pointer}/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`

export const isBelow = (pointer: string, other: string): boolean => pointer.startsWith(`${other}/`)

export const elementNumber = (step: string): number | null =>
  /^(?:0|[1-9]\d{0,9})$/.test(step) ? Number(step) : null

const MOST_SHOWN = 200

/** In a sentence. */
export function showPointer(pointer: string): string {
  if (pointer === '') return 'the whole payload'
  return pointer.length > MOST_SHOWN ? `${pointer.slice(0, MOST_SHOWN)}…` : pointer
}
