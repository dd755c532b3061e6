/** A redrive under way, on a terminal and in a line. Pure: the same redrive gives the same picture. */

import type { RedriveItem, RedriveState } from '../../client/redrive-types.ts'
import { isOver } from '../../redrive/redrive.ts'
import type { Style } from '../style.ts'
import { printable } from '../terminal.ts'
import { wrapped } from '../text-width.ts'
import { redriveBar } from './bar.ts'
import { countLines, durationText, lettersText, rateText, timesText } from './numbers.ts'

const MOST_CELLS = 60
const LEAST_CELLS = 10
/** What stands beside the bar: the state before it, the part that is through behind it. */
const BESIDE = 18

/** The picture as lines that fit that many columns. */
export const frameOf = (redrive: RedriveItem, columns: number, style: Style): readonly string[] => [
  ...wrapped(printable(redrive.sentence), columns).map(style.bold),
  ...progressOf(redrive, columns, style),
]

/** How far it is, without the sentence. */
export function progressOf(redrive: RedriveItem, columns: number, style: Style): readonly string[] {
  const { action, counts, state } = redrive
  const cells = Math.min(MOST_CELLS, Math.max(LEAST_CELLS, columns - BESIDE))
  const through = counts.planned === 0 ? 1 : 1 - counts.remaining / counts.planned
  const percent = `${Math.floor(through * 100)}%`
  return [
    `${stateIn(style, state, state.padEnd(10))} ${redriveBar(counts, cells, style)} ${percent.padStart(4)}`,
    ...countLines(action, counts).map((line, index) => `${' '.repeat(index * 2)}${line}`),
    ...[paceText(redrive), canaryText(redrive), restartText(redrive)].filter((line) => line !== ''),
  ]
}

/** A state in its colour. */
export function stateIn(style: Style, state: RedriveState, text: string): string {
  if (state === 'done') return style.green(text)
  if (state === 'stopped' || state === 'cancelled') return style.red(text)
  return state === 'paused' ? style.yellow(text) : style.cyan(text)
}

/** How fast it is and how long it takes; empty when there is nothing to say. */
function paceText({ state, rate, rateNow, secondsLeft }: RedriveItem): string {
  if (isOver(state)) return ''
  return [
    ...(rateNow === null ? [] : [`${rateText(rateNow)} letters a second`]),
    ...(rate === null ? [] : [`at most ${rateText(rate)} a second to each destination`]),
    ...(secondsLeft === null ? [] : [`${durationText(secondsLeft)} left`]),
  ].join(', ')
}

function canaryText({ state, canary }: RedriveItem): string {
  if (state !== 'canary' || canary === null) return ''
  return `canary: goes on when ${canary.confirmPercent}% of ${lettersText(canary.letters)} are confirmed, pauses after ${durationText(canary.waitSeconds)}`
}

/** What a paused or restarted redrive survived. */
export const restartText = ({ resumed }: Pick<RedriveItem, 'resumed'>): string =>
  resumed === 0 ? '' : `went on after a restart, ${timesText(resumed)}`

/** The same in one line, for what is no terminal. */
export function lineOf(redrive: RedriveItem): string {
  const { id, state, sentence } = redrive
  const pace = paceText(redrive)
  return printable(`${id} ${state}: ${sentence}${pace === '' ? '' : ` ${pace}`}`)
}

/** How it ended, or how it stands: the sentence, and the numbers that add up. */
export function accountOf(redrive: RedriveItem): string {
  const { action, counts, sentence } = redrive
  return [printable(sentence), ...countLines(action, counts), restartText(redrive)]
    .filter((line) => line !== '')
    .join('\n')
}
