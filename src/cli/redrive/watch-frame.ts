/** A redrive under way, on a terminal and in a line. Pure. */
import type { RedriveCounts, RedriveItem } from '../../client/redrives.ts'
import { isOver, isSending, type RedriveAction } from '../../redrive/redrive.ts'
import { wrapped } from '../../terminal/table.ts'
import { printable, type Style, stateIn } from '../../terminal/terminal.ts'
import { durationText, grouped, lettersText, rateText, timesText } from '../../terminal/words.ts'

const MOST_CELLS = 60
const LEAST_CELLS = 10
/** The state before the bar, the percentage behind it. */
const BESIDE = 18

export const frameOf = (redrive: RedriveItem, columns: number, style: Style): readonly string[] => [
  ...wrapped(printable(redrive.sentence), columns).map(style.bold),
  ...progressOf(redrive, columns, style),
]

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

/** Speed and time left; empty when there is nothing to say. */
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

const restartText = ({ resumed }: Pick<RedriveItem, 'resumed'>): string =>
  resumed === 0 ? '' : `went on after a restart, ${timesText(resumed)}`

/** One line, where there is no terminal. */
export function lineOf(redrive: RedriveItem): string {
  const { id, state, sentence } = redrive
  const pace = paceText(redrive)
  return printable(`${id} ${state}: ${sentence}${pace === '' ? '' : ` ${pace}`}`)
}

/** The sentence, and the numbers that add up. */
export function accountOf(redrive: RedriveItem): string {
  const { action, counts, sentence } = redrive
  return [printable(sentence), ...countLines(action, counts), restartText(redrive)]
    .filter((line) => line !== '')
    .join('\n')
}

/** Numbers as sums. */
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
const DONE: Readonly<Record<RedriveAction, string>> = {
  retry: 'sent back',
  move: 'moved',
  discard: 'discarded',
  restore: 'restored',
}

const sum = (total: number, of: string, parts: readonly (readonly [number, string])[]): string =>
  `${grouped(total)} ${of} = ${parts.map(([count, name]) => `${grouped(count)} ${name}`).join(' + ')}`

interface Part {
  readonly name: Exclude<keyof RedriveCounts, 'planned' | 'sent'>
  readonly cell: string
  readonly paint: (style: Style) => (text: string) => string
}

/** In order. Without colours the shades still differ. */
const PARTS: readonly Part[] = [
  { name: 'confirmed', cell: '█', paint: (style) => style.green },
  { name: 'unconfirmed', cell: '▓', paint: (style) => style.cyan },
  { name: 'returned', cell: '▚', paint: (style) => style.red },
  { name: 'failed', cell: '▒', paint: (style) => style.red },
  { name: 'skipped', cell: '▒', paint: (style) => style.yellow },
  { name: 'remaining', cell: '░', paint: (style) => style.dim },
]

export function redriveBar(counts: RedriveCounts, cells: number, style: Style): string {
  const shares = share(
    PARTS.map(({ name }) => counts[name]),
    cells,
  )
  return PARTS.map(({ cell, paint }, index) => paint(style)(cell.repeat(shares[index] ?? 0))).join('')
}

/** Exactly `cells` in all, and at least one for each count above zero. */
export function share(counts: readonly number[], cells: number): readonly number[] {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return counts.map(() => 0)
  const exact = counts.map((count) => (count / total) * cells)
  const given = exact.map((part, index) => ((counts[index] ?? 0) > 0 ? Math.max(1, Math.floor(part)) : 0))
  // Rounding errors go where they are felt least.
  const surplus = (index: number): number => (given[index] ?? 0) - (exact[index] ?? 0)
  const indices = counts.flatMap((count, index) => (count > 0 ? [index] : []))
  for (let left = cells - given.reduce((sum, part) => sum + part, 0); left !== 0; left -= Math.sign(left)) {
    const open = left > 0 ? indices : indices.filter((index) => (given[index] ?? 0) > 1)
    const [first] = open.toSorted((a, b) => (left > 0 ? surplus(a) - surplus(b) : surplus(b) - surplus(a)))
    if (first === undefined) break
    given[first] = (given[first] ?? 0) + Math.sign(left)
  }
  return given
}
