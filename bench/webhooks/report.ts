/** The tables of one part on one store: every figure beside what it is measured against, with its goal; then the books. */
import { type Middle, middleOf, type Times } from '../figures.ts'
import {
  count,
  judged,
  type Line,
  lineTable,
  megabytes,
  millis,
  percent,
  perSecond,
  table,
  times,
} from '../tables.ts'
import type { Books } from './books.ts'
import type { Part, Sizes } from './flags.ts'
import { hangings, nameOfDeliver, nameOfHang } from './plan.ts'
import type { StoreResults } from './results.ts'
import type { DeliverFigure } from './task.ts'

export const partTitles: Readonly<Record<Part, string>> = {
  deliver: 'Broadcast to delivered',
  backlog: 'Broadcasting while much waits',
  hang: 'Beside a consumer that hangs',
  'dlq-status': 'What is read all the time, with many dead jobs',
  bulk: 'Purging and requeuing all dead jobs',
}

/** Everything of one part on one store as markdown. */
export function partTables(part: Part, title: string, results: StoreResults, sizes: Sizes): string {
  const tables = [lineTable(title, lines[part](results, sizes))]
  if (part === 'deliver') tables.push(costs(title, results))
  return tables.join('\n\n')
}

const spread = ({ median, spread: half }: Middle): string => `${perSecond(median)} ±${percent(half)}`

const books = (what: string, { sent, delivered, dead, waiting, removed }: Books): Line => [
  `books${what}`,
  `${count(sent)} =`,
  `${count(delivered)} delivered + ${count(dead)} dead + ${count(waiting)} waiting + ${count(removed)} removed`,
  '',
  '',
]

const lines: Readonly<Record<Part, (results: StoreResults, sizes: Sizes) => Line[]>> = {
  deliver: deliverLines,
  backlog: backlogLines,
  hang: hangLines,
  'dlq-status': dlqStatusLines,
  bulk: bulkLines,
}

const JUDGED_CONSUMERS = 10
const LEAST_DELIVERIES = 8_000

function deliverLines({ deliver }: StoreResults): Line[] {
  return [...deliver].flatMap(([consumers, runs]) => {
    const name = nameOfDeliver(consumers)
    const rate = middleOf(runs, (figure) => figure.perSecond)
    const floor = middleOf(runs, (figure) => figure.floorPerSecond)
    const broadcasts = middleOf(runs, (figure) => figure.broadcastsPerSecond)
    const [first] = runs
    if (rate === null || floor === null || broadcasts === null || first === undefined) return []
    const way = (value: (way: Times) => number) =>
      millis(middleOf(runs, (figure) => value(figure.way))?.median ?? 0)
    const at = `${count(first.messagesPerSecond)} messages/s`
    return [
      [
        `deliveries, ${name}`,
        spread(rate),
        `bare loop: ${spread(floor)}`,
        percent(rate.median / floor.median),
        consumers === JUDGED_CONSUMERS
          ? judged(`≥ ${perSecond(LEAST_DELIVERIES)}`, rate.median >= LEAST_DELIVERIES)
          : '',
      ],
      [`broadcasts meanwhile, ${name}`, spread(broadcasts), '', '', ''],
      [`broadcast to arrival, ${name}, p50`, way(({ p50Ms }) => p50Ms), at, '', ''],
      [`broadcast to arrival, ${name}, p99`, way(({ p99Ms }) => p99Ms), at, '', ''],
      books(`, ${name}`, first.books),
    ] satisfies Line[]
  })
}

const MOST_ANSWER_MS = 10

function backlogLines({ backlog }: StoreResults): Line[] {
  if (backlog === null) return []
  const [atFirst, atLast] = backlog.waiting
  const { before, beside } = backlog.ways
  const waiting = `${count(atFirst)} waiting`
  return [
    ...backlog.answers.flatMap(({ what, beside: isBeside, times: { p50Ms, p99Ms, worstMs } }): Line[] => {
      const name = `broadcast ${what}, ${isBeside ? waiting : 'nothing waiting'}`
      const goal = isBeside ? judged(`< ${MOST_ANSWER_MS} ms`, p99Ms < MOST_ANSWER_MS) : ''
      return [
        [`${name}, p50`, millis(p50Ms), '', '', ''],
        [`${name}, p99`, millis(p99Ms), `worst: ${millis(worstMs)}`, '', goal],
      ]
    }),
    wayLine('broadcast to arrival at the healthy consumer', waiting, beside, before, 'p50Ms'),
    wayLine('broadcast to arrival at the healthy consumer', waiting, beside, before, 'p99Ms'),
    ['peak RSS of the server', megabytes(backlog.serverPeakRssMb), '', '', ''],
    ['waiting at the end', count(atLast), `at the beginning: ${count(atFirst)}`, '', ''],
    books('', backlog.books),
  ]
}

const wayLine = (
  what: string,
  waiting: string,
  beside: Times,
  before: Times,
  which: 'p50Ms' | 'p99Ms',
): Line => [
  `${what}, ${waiting}, ${which.slice(0, 3)}`,
  millis(beside[which]),
  `nothing waiting: ${millis(before[which])}`,
  times(beside[which] / before[which]),
  '',
]

const LEAST_BESIDE_HANG = 0.9

function hangLines({ hang }: StoreResults): Line[] {
  const alone = middleOf(hang.get(0), (figure) => figure.perSecond)
  return hangings.flatMap((hanging) => {
    const runs = hang.get(hanging)
    const rate = middleOf(runs, (figure) => figure.perSecond)
    const [first] = runs ?? []
    if (rate === null || first === undefined) return []
    const name = nameOfHang(hanging)
    const share = hanging === 0 || alone === null ? Number.NaN : rate.median / alone.median
    const isJudged = hanging === 1 && alone !== null
    return [
      [
        `deliveries to a healthy consumer, ${name}`,
        spread(rate),
        hanging === 0 ? '' : `${count(first.hung)} attempts hung at the beginning`,
        Number.isNaN(share) ? '' : percent(share),
        isJudged ? judged(`≥ ${percent(LEAST_BESIDE_HANG)}`, share >= LEAST_BESIDE_HANG) : '',
      ],
      books(`, ${name}`, first.books),
    ] satisfies Line[]
  })
}

const MOST_SLOWDOWN = 2
/** The most that a p99 may be. */
const mostMs: Readonly<Record<string, number>> = {
  '/dlq-status': 5,
  '/metrics': 100,
  'first page of dead jobs': 100,
}

function dlqStatusLines({ dlqStatus }: StoreResults): Line[] {
  const [few, ...others] = [...dlqStatus]
  if (few === undefined) return []
  const [fewest, least] = few
  const ofSize = ([dead, figure]: typeof few): Line[] => [
    ...Object.entries(figure.reads).flatMap(([name, taken]) =>
      (['p50Ms', 'p99Ms'] as const).map((which): Line => {
        const before = least.reads[name]?.[which] ?? Number.NaN
        const ratio = taken[which] / before
        const limit = which === 'p99Ms' ? mostMs[name] : undefined
        const goals = [
          ...(limit === undefined ? [] : [`≤ ${limit} ms`]),
          ...(name === '/dlq-status' ? ['≤ 2x'] : []),
        ]
        const isMet =
          (limit === undefined || taken[which] <= limit) && (name !== '/dlq-status' || ratio <= MOST_SLOWDOWN)
        return [
          `${name}, ${which.slice(0, 3)}, ${count(dead)} dead`,
          millis(taken[which]),
          `${count(fewest)} dead: ${millis(before)}`,
          times(ratio),
          goals.length === 0 ? '' : judged(goals.join(', '), isMet),
        ]
      }),
    ),
    [
      `peak RSS of the server, ${count(dead)} dead`,
      megabytes(figure.serverPeakRssMb),
      `${count(fewest)} dead: ${megabytes(least.serverPeakRssMb)}`,
      '',
      '',
    ],
    books(`, loaded in ${figure.loadSeconds.toFixed(0)} s`, figure.books),
  ]
  return others.flatMap(ofSize)
}

const LEAST_BESIDE_BULK = 0.8

function bulkLines({ bulk }: StoreResults): Line[] {
  return [...bulk].flatMap(
    ([act, { jobs, perSecond: rate, isAnswered, before, during, rssBeforeMb, rssAfterMb, books: kept }]) => {
      const share = during.perSecond / before.perSecond
      const name = `${act} of ${count(jobs)}`
      const way = (which: 'p50Ms' | 'p99Ms'): Line => [
        `${name}: broadcast to arrival at another consumer, ${which.slice(0, 3)}`,
        millis(during.way[which]),
        `before: ${millis(before.way[which])}`,
        times(during.way[which] / before.way[which]),
        '',
      ]
      return [
        [name, perSecond(rate), `${(jobs / rate).toFixed(1)} s`, '', judged('answered', isAnswered)],
        [
          `${name}: deliveries to another consumer`,
          perSecond(during.perSecond),
          `before: ${perSecond(before.perSecond)}`,
          percent(share),
          judged(`≥ ${percent(LEAST_BESIDE_BULK)}`, share >= LEAST_BESIDE_BULK),
        ],
        way('p50Ms'),
        way('p99Ms'),
        [
          `${name}: peak RSS of the server`,
          megabytes(rssAfterMb),
          `before: ${megabytes(rssBeforeMb)}`,
          '',
          '',
        ],
        books(`, ${act}`, kept),
      ] satisfies Line[]
    },
  )
}

function costs(title: string, { deliver }: StoreResults): string {
  const shown = (runs: readonly DeliverFigure[], value: keyof DeliverFigure['costs'], digits: number) =>
    middleOf(
      runs.filter(({ costs: spent }) => typeof spent[value] === 'number'),
      ({ costs: spent }) => Number(spent[value]),
    )?.median.toFixed(digits) ?? '–'
  return table(
    [
      `${title}: costs per delivery`,
      'WAL bytes',
      'write transactions per 1,000',
      'CPU s of server and sender per 100 k',
      'peak RSS of the server (MB)',
    ],
    [...deliver].map(([consumers, runs]) => [
      nameOfDeliver(consumers),
      shown(runs, 'walBytesPerItem', 0),
      shown(runs, 'writeTransactionsPer1000', 1),
      shown(runs, 'cpuSecondsPer100k', 1),
      shown(runs, 'serverPeakRssMb', 0),
    ]),
  )
}
