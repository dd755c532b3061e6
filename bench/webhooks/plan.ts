/** Which measurements the parts consist of, in the order of their turns, and what each is called. */
import type { Sizes } from './flags.ts'

export const nameOfDeliver = (consumers: number): string =>
  `${consumers} ${consumers === 1 ? 'consumer' : 'consumers'}`

/** How many consumers hang: nobody, one, and more than the server has workers for. */
export const hangings = [0, 1, 5] as const
export type Hanging = (typeof hangings)[number]

export const nameOfHang = (hanging: number): string =>
  hanging === 0 ? 'alone' : `beside ${hanging} that ${hanging === 1 ? 'hangs' : 'hang'}`

/** Every turn once: a slow minute of the machine does not hit one measurement alone. */
export function inTurns<T>({ runs }: Sizes, each: readonly T[]): T[] {
  return Array.from({ length: runs }, () => each).flat()
}
