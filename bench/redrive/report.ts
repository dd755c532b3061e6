/** The lines of the table: every figure beside what it is measured against, with its goal. */
import { median, middleOf } from '../figures.ts'
import type { Dialect } from '../letters/sql.ts'
import { count, judged, type Line, megabytes, percent } from '../tables.ts'
import type {
  BareFigure,
  Books,
  CancelFigure,
  LiveFigure,
  RateFigure,
  RunFigure,
  Source,
  SourceFigure,
} from './task.ts'

const PLAN_SECONDS_A_MILLION = 30
const VERIFY_SECONDS_A_MILLION = 300
/** With fewer letters, or in less time, what happens once at the start counts too much to say met or missed. */
const JUDGED_LETTERS = 100_000
const JUDGED_SECONDS = 10
/** Of bare SQL on PostgreSQL; letters a second on SQLite. */
const REDRIVE_SHARE = 0.45
const LETTERS_A_SECOND = 30_000
const MEMORY_MB = 256
const SOURCE_SHARE = 0.5
const LIVE_SHARE = 0.8
const CANCEL_MS = 1_000
const RATE_MARGIN = 0.02

const bytes = (number: number | null): string => (number === null ? '–' : `${count(number)} B`)

/** What grows with its letters, and so does its goal. */
function grownLine(what: string, letters: number, seconds: number, aMillion: number): Line {
  const goal = (aMillion * letters) / 1_000_000
  return [
    what,
    `${seconds.toFixed(1)} s`,
    `${count(letters / seconds)} letters/s`,
    '',
    letters < JUDGED_LETTERS ? '' : judged(`< ${goal.toFixed(1)} s`, seconds < goal),
  ]
}

const planLine = (what: string, { letters, planSeconds }: RunFigure): Line =>
  grownLine(what, letters, planSeconds, PLAN_SECONDS_A_MILLION)

const verifyLine = ({ letters, books }: RunFigure): Line =>
  grownLine('`bartleby verify` after it', letters, books.verifySeconds, VERIFY_SECONDS_A_MILLION)

/** The run in the middle, by its rate. */
function middleRun<T extends { readonly perSecond: number }>(runs: readonly T[]): T {
  const middle = runs.toSorted((a, b) => a.perSecond - b.perSecond)[Math.floor(runs.length / 2)]
  if (middle === undefined) throw new Error('there was no run')
  return middle
}

/** The rate in the middle, and half of the range where there were several. */
function rateOf(runs: readonly { readonly perSecond: number }[]): string {
  const middle = middleOf(runs, ({ perSecond }) => perSecond)
  if (middle === null) return '–'
  return `${count(middle.median)} letters/s${runs.length === 1 ? '' : ` ±${percent(middle.spread)}`}`
}

function redriveGoal(dialect: Dialect, perSecond: number, ratio: number): string {
  return dialect === 'postgres'
    ? judged(`≥ ${percent(REDRIVE_SHARE)}`, ratio >= REDRIVE_SHARE)
    : judged(`≥ ${count(LETTERS_A_SECOND)}/s`, perSecond >= LETTERS_A_SECOND)
}

export function runLines(
  dialect: Dialect,
  runs: readonly RunFigure[],
  bareRuns: readonly BareFigure[],
): Line[] {
  const figure = middleRun(runs)
  const bare = middleRun(bareRuns)
  const { letters, perSecond, memory } = figure
  const { atStart, ofPlan, ofFirstHalf, ofSecondHalf } = memory
  const peak = Math.max(...runs.map((run) => run.memory.peak))
  const ratio = perSecond / bare.perSecond
  return [
    planLine(`plan of ${count(letters)} letters`, figure),
    [
      'redrive of them, without a rate',
      rateOf(runs),
      `bare SQL ${rateOf(bareRuns)}`,
      percent(ratio),
      letters >= JUDGED_LETTERS ? redriveGoal(dialect, perSecond, ratio) : '',
    ],
    ...walLines(figure, bare),
    ['memory at the start', megabytes(atStart), '', '', ''],
    ['memory of the plan, peak', megabytes(ofPlan), '', '', ''],
    [
      'memory of the redrive, peak of its second half',
      megabytes(ofSecondHalf),
      `first half ${megabytes(ofFirstHalf)}`,
      percent(ofSecondHalf / ofFirstHalf),
      '',
    ],
    [
      'memory of the process, peak',
      megabytes(peak),
      '',
      '',
      judged(`< ${megabytes(MEMORY_MB)}`, peak < MEMORY_MB),
    ],
    verifyLine(figure),
    booksLine('books of the redrive', figure.books),
  ]
}

function walLines({ walBytes, planWalBytes }: RunFigure, bare: BareFigure): Line[] {
  if (walBytes === null || bare.walBytes === null) return []
  return [
    ['WAL of the plan, a letter', bytes(planWalBytes), '', '', ''],
    [
      'WAL of the redrive, a letter',
      bytes(walBytes),
      `bare SQL ${bytes(bare.walBytes)}`,
      percent(walBytes / bare.walBytes),
      '',
    ],
  ]
}

export function keyedLines(keys: number, runs: readonly RunFigure[]): Line[] {
  const figure = middleRun(runs)
  return [
    planLine(`plan of ${count(figure.letters)} letters of ${count(keys)} keys`, figure),
    ['redrive of them', rateOf(runs), '', '', ''],
    verifyLine(figure),
    booksLine('books, and each key in its order', figure.books),
  ]
}

/** Letters of queues are what the others are measured against. */
export function sourceLines(letters: number, figures: ReadonlyMap<Source, SourceFigure>): Line[] {
  const queues = figures.get('queues')?.perSecond ?? 0
  return [...figures].map(([from, { perSecond }]): Line => {
    const what = `redrive of ${count(letters)} letters of ${from}`
    if (from === 'queues') return [what, `${count(perSecond)} letters/s`, '', '', 'verified']
    const ratio = perSecond / queues
    const goal = judged(`≥ ${percent(SOURCE_SHARE)}`, ratio >= SOURCE_SHARE)
    return [what, `${count(perSecond)} letters/s`, `queues ${count(queues)}/s`, percent(ratio), goal]
  })
}

export function liveLines({ alone, beside, lettersPerSecond, books }: LiveFigure): Line[] {
  const ratio = beside.itemsPerSecond / alone.itemsPerSecond
  return [
    [
      'live traffic beside a redrive',
      `${count(beside.itemsPerSecond)} items/s`,
      `alone ${count(alone.itemsPerSecond)}/s`,
      percent(ratio),
      judged(`≥ ${percent(LIVE_SHARE)}`, ratio >= LIVE_SHARE),
    ],
    ...(['p50Ms', 'p99Ms'] as const).map(
      (name): Line => [
        `its calls, ${name.slice(0, 3)}`,
        `${beside[name].toFixed(1)} ms`,
        `alone ${alone[name].toFixed(1)} ms`,
        percent(beside[name] / alone[name]),
        '',
      ],
    ),
    ['the redrive meanwhile', `${count(lettersPerSecond)} letters/s`, '', '', ''],
    booksLine('books', books),
  ]
}

export function cancelLines({ tookMs, sentAfter, books }: CancelFigure): Line[] {
  const worst = Math.max(...tookMs)
  return [
    [
      `cancel, the slowest of ${tookMs.length}`,
      `${worst.toFixed(0)} ms`,
      `median ${median(tookMs).toFixed(0)} ms`,
      '',
      judged(`< ${count(CANCEL_MS)} ms`, worst < CANCEL_MS),
    ],
    ['letters sent after it returned', count(sentAfter), '', '', judged('0', sentAfter === 0)],
    booksLine('books', books),
  ]
}

export const rateLines = (
  rate: number,
  seconds: number,
  { windows, expected, books }: RateFigure,
): Line[] => [
  ...windows.map((letters, at): Line => {
    const off = letters / expected - 1
    return [
      `${count(rate)}/s, letters of ${at === 0 ? 'the first' : 'the next'} ${seconds} s`,
      count(letters),
      `asked for ${count(expected)}`,
      `${off < 0 ? '−' : '+'}${(Math.abs(off) * 100).toFixed(1)}%`,
      seconds < JUDGED_SECONDS ? '' : judged(`± ${percent(RATE_MARGIN)}`, Math.abs(off) <= RATE_MARGIN),
    ]
  }),
  booksLine('books', books),
]

const booksLine = (what: string, { sent, items, resolved, retries }: Books): Line => [
  what,
  `${count(sent)} sent`,
  `= ${count(items)} items = ${count(resolved)} resolved = ${count(retries)} in history`,
  '',
  'verified',
]

/** A measurement that failed is a loss, not a gap. */
export const failedLine = (part: string, reason: string): Line => [part, '**failed**', reason, '', '']
