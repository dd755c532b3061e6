/** The numbers of redrives for people, each with what it means. */

import type { RedriveCounts, RedriveNumbers } from '../../client/redrive-types.ts'
import { isSending, type RedriveAction } from '../../redrive/redrive.ts'
import { grouped } from '../progress.ts'
import type { Style } from '../style.ts'

const MEANINGS: readonly (readonly [name: keyof RedriveNumbers, words: string, meaning: string])[] = [
  ['matched', 'matched', 'letters were asked for; the sum of those below'],
  ['eligible', 'eligible', 'are in the plan'],
  ['inFlight', 'in flight', 'were sent and not heard of, are leased, or in another redrive'],
  ['noDestination', 'no destination', 'have nowhere to go to'],
  ['orderBlocked', 'order blocked', 'come after a pending letter of their key that is not in the plan'],
  ['duplicate', 'duplicate', 'were named more than once'],
  ['invalid', 'invalid', 'are unknown, not in the status that it takes, or the repair does not apply'],
]

/** What a plan found, a line for each number; those that are zero step back. */
export function numberLines(numbers: RedriveNumbers, style: Style): readonly string[] {
  const width = Math.max(...MEANINGS.map(([name]) => grouped(numbers[name]).length))
  return MEANINGS.map(([name, words, meaning]) => {
    const count = numbers[name]
    const line = `${grouped(count).padStart(width)}  ${words.padEnd(16)}${meaning}`
    if (count === 0) return style.dim(line)
    return name === 'eligible' ? style.bold(line) : line
  })
}

/** `2 no destination, 1 duplicate`: those that match and are not in the plan; empty when there are none. */
export const leftOut = (numbers: RedriveNumbers): string =>
  MEANINGS.filter(([name]) => name !== 'matched' && name !== 'eligible' && numbers[name] > 0)
    .map(([name, words]) => `${grouped(numbers[name])} ${words}`)
    .join(', ')

/** What the letters of a redrive have become, as sums that hold. */
export function countLines(action: RedriveAction, counts: RedriveCounts): readonly string[] {
  const { planned, sent, skipped, failed, remaining, confirmed, returned, unconfirmed } = counts
  const done = DONE[action]
  return [
    sum(planned, 'planned', [
      [sent, done],
      [skipped, 'skipped'],
      [failed, 'failed'],
      [remaining, 'remaining'],
    ]),
    ...(isSending(action) && sent > 0
      ? [
          sum(sent, done, [
            [confirmed, 'confirmed'],
            [returned, 'returned'],
            [unconfirmed, 'unconfirmed'],
          ]),
        ]
      : []),
  ]
}

/** `12 were …`. */
export const DONE: Readonly<Record<RedriveAction, string>> = {
  retry: 'sent back',
  move: 'moved',
  discard: 'discarded',
  restore: 'restored',
}

const sum = (total: number, of: string, parts: readonly (readonly [number, string])[]): string =>
  `${grouped(total)} ${of} = ${parts.map(([count, name]) => `${grouped(count)} ${name}`).join(' + ')}`

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
] as const

/** `2m 5s`: how long something takes, in its two largest units. */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds))
  const largest = UNITS.findIndex(([, length]) => whole >= length)
  if (largest < 0) return '0s'
  let rest = whole
  const parts = UNITS.slice(largest, largest + 2).map(([unit, length]) => {
    const count = Math.floor(rest / length)
    rest -= count * length
    return count === 0 ? '' : `${count}${unit}`
  })
  return parts.filter((part) => part !== '').join(' ')
}

/** `48.3`: a rate in as many digits as say something. */
export const rateText = (rate: number): string =>
  rate.toLocaleString('en-US', { maximumSignificantDigits: rate < 1_000 ? 3 : 6 })

/** `once`, `twice`, `3 times`. */
export const timesText = (count: number): string => {
  if (count === 1) return 'once'
  return count === 2 ? 'twice' : `${grouped(count)} times`
}

/** `1 letter`, `1,204 letters`. */
export const lettersText = (count: number): string =>
  `${grouped(count)} ${count === 1 ? 'letter' : 'letters'}`
