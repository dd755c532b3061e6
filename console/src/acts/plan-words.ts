/** The numbers of a plan in words. */
import type { RedriveNumbers } from '../api/redrive-types.ts'
import { grouped, span } from '../time/format.ts'

/** How long the outcomes of the first letters are waited for, to the second: `10 min`, `90 s`. */
export const waitWords = (seconds: number): string =>
  seconds % 60 === 0 ? span(seconds * 1_000) : `${grouped(seconds)} s`

/** Why letters that match are not in the plan. */
export type ExceptionNumber = Exclude<keyof RedriveNumbers, 'matched' | 'eligible'>

export const FOUND_WORDS: Readonly<
  Record<ExceptionNumber, { readonly short: string; readonly means: string }>
> = {
  inFlight: {
    short: 'in flight',
    means: 'sent back and unconfirmed, held by a consumer of their dead queue, or part of another redrive.',
  },
  noDestination: { short: 'without destination', means: 'there is nowhere to send them to.' },
  orderBlocked: {
    short: 'behind others',
    means:
      'an earlier letter of their key is pending and not in the plan. Plan it with them, or choose another order.',
  },
  duplicate: { short: 'named twice', means: 'once is enough.' },
  invalid: {
    short: 'not possible',
    means: 'gone, in another status than the act needs, or the repair does not apply to them.',
  },
}

const EXCEPTIONS: readonly ExceptionNumber[] = [
  'inFlight',
  'noDestination',
  'orderBlocked',
  'duplicate',
  'invalid',
]

/** Those that are not zero. */
export const exceptionsIn = (numbers: RedriveNumbers): readonly (readonly [ExceptionNumber, number])[] =>
  EXCEPTIONS.flatMap((name) => (numbers[name] === 0 ? [] : [[name, numbers[name]] as const]))
