/** The tables of one store: every figure beside what it is measured against, with its goal; then what it cost. */
import { count, judged, type Line, lineTable, millis, percent, perSecond, table, times } from '../tables.ts'
import type { Measurement } from '../task.ts'
import type { Sizes } from './flags.ts'
import { nameOf, peerBacklogs } from './plan.ts'
import type { StoreResults } from './results.ts'
import type { DispatchRun } from './task.ts'

/** Everything of one store as markdown. */
export function storeTables(title: string, results: StoreResults, sizes: Sizes): string {
  const lines = [
    ...writerLines(results),
    ...dispatchLines(results, sizes),
    ...latencyLines(results),
    ...backlogLines(results, sizes),
    ...readLines(results, sizes),
  ]
  const tables = [lineTable(title, lines)]
  if (results.dispatches.length > 0) tables.push(costs(title, results))
  return tables.join('\n\n')
}

const MOST_OVERHEAD = 15
const LEAST_SHARE = 0.6

function writerLines({ writer }: StoreResults): Line[] {
  return writer.map(({ what, plainPerSecond, writerPerSecond, overheadPercent }) => [
    `writer: ${what}`,
    perSecond(writerPerSecond),
    `plain insert ${perSecond(plainPerSecond)}`,
    `${overheadPercent < 0 ? '−' : '+'}${Math.abs(overheadPercent).toFixed(1)}%`,
    judged(`≤ ${MOST_OVERHEAD}%`, overheadPercent <= MOST_OVERHEAD),
  ])
}

const rateOf = ({ perSecond: rate }: Measurement): number => rate

function dispatchLines(results: StoreResults, sizes: Sizes): Line[] {
  const { messages, batchSizes } = sizes
  const lines: Line[] = []
  const compare = (
    what: string,
    run: Pick<DispatchRun, 'receiver' | 'batchSize'>,
    other: DispatchRun,
    goal: number | null,
  ) => {
    const ours = results.figure(nameOf({ ...run, system: 'dispatcher', backlog: messages }), rateOf)
    const theirs = results.figure(nameOf(other), rateOf)
    if (ours === null || theirs === null) return
    const shown = (figure: typeof ours) => `${perSecond(figure.median)} ±${percent(figure.spread)}`
    const ratio = ours.median / theirs.median
    lines.push([
      what,
      shown(ours),
      `${nameOf(other)}: ${shown(theirs)}`,
      ratio < 3 ? percent(ratio) : Number.isFinite(ratio) ? times(ratio) : '–',
      goal === null ? '' : judged(`≥ ${goal === 1 ? '1x' : percent(goal)}`, ratio >= goal),
    ])
  }
  const [usualSize = 100] = batchSizes
  const usual = { receiver: 'function', batchSize: usualSize } as const
  for (const batchSize of batchSizes) {
    const bare = { system: 'bare', receiver: 'function', batchSize, backlog: messages } as const
    const toFunction = { receiver: 'function', batchSize } as const
    const toHttp = { receiver: 'http', batchSize } as const
    compare(`dispatch to a function, by ${batchSize}`, toFunction, bare, LEAST_SHARE)
    const what = `dispatch over HTTP, by ${batchSize}`
    compare(what, toHttp, { ...bare, receiver: 'http' }, LEAST_SHARE)
    compare(what, toHttp, bare, LEAST_SHARE)
    compare(what, toHttp, { ...bare, system: 'posts', receiver: 'http' }, null)
  }
  for (const backlog of peerBacklogs(sizes)) {
    for (const system of ['peer-best', 'peer-default'] as const)
      compare(`dispatch to a function, by ${usual.batchSize}`, usual, { ...usual, system, backlog }, 1)
  }
  return lines
}

const MOST_LATENCY_MS = 50

function latencyLines({ latency }: StoreResults): Line[] {
  if (latency === null) return []
  const { samples, p50Ms, p99Ms, worstMs } = latency
  return [
    [`commit to delivery, idle, p50 of ${samples}`, millis(p50Ms), '', '', ''],
    [
      'commit to delivery, idle, p99',
      millis(p99Ms),
      '',
      '',
      judged(`≤ ${MOST_LATENCY_MS} ms`, p99Ms <= MOST_LATENCY_MS),
    ],
    ['commit to delivery, idle, worst', millis(worstMs), '', '', ''],
  ]
}

/** Rates of one and the same thing differ by so much on a machine that is shared by client and server. */
const LEAST_OF_SMALL = 0.8
/** A heap breathes; one that grows with the backlog would grow by far more. */
const MOST_GROWTH = 1.25

function backlogLines({ backlog }: StoreResults, { smallBacklog, largeBacklog }: Sizes): Line[] {
  if (backlog === null) return []
  const { small, large } = backlog
  const rate = (where: string, value: number): Line => [
    `dispatch with ${count(largeBacklog)} waiting, ${where}`,
    perSecond(value),
    `${count(smallBacklog)} waiting: ${perSecond(small.firstPerSecond)}`,
    percent(value / small.firstPerSecond),
    judged(`≥ ${percent(LEAST_OF_SMALL)}`, value / small.firstPerSecond >= LEAST_OF_SMALL),
  ]
  const growth = large.lateRssMb / large.earlyRssMb
  return [
    rate('the first', large.firstPerSecond),
    rate('in the middle', large.middlePerSecond),
    rate('the last', large.lastPerSecond),
    [
      `memory with ${count(largeBacklog)} waiting, the most of the second half`,
      `${large.lateRssMb.toFixed(0)} MB`,
      `after the first tenth: ${large.earlyRssMb.toFixed(0)} MB; ${count(smallBacklog)} waiting: ${small.lateRssMb.toFixed(0)} MB`,
      times(growth),
      judged(`≤ ${MOST_GROWTH}x`, growth <= MOST_GROWTH),
    ],
  ]
}

const MOST_SLOWDOWN = 2
/** Those that are filtered look at the first 100,000 rows, if there are so many; nobody promised otherwise. */
const withoutGoal = /of a tenant/

function readLines({ reads }: StoreResults, { processedRows }: Sizes): Line[] {
  if (reads === null) return []
  const { few, many } = reads
  return Object.entries(many).map(([name, ms]) => {
    const ratio = ms / (few[name] ?? Number.NaN)
    return [
      `${name}, ${count(processedRows)} processed`,
      millis(ms),
      `${count(FEW_PROCESSED)} processed: ${millis(few[name] ?? Number.NaN)}`,
      times(ratio),
      withoutGoal.test(name) ? '' : judged(`≤ ${MOST_SLOWDOWN}x`, ratio <= MOST_SLOWDOWN),
    ]
  })
}

/** An outbox that has just begun. */
export const FEW_PROCESSED = 1_000

function costs(title: string, results: StoreResults): string {
  const shown = (name: string, value: (measurement: Measurement) => number | null, digits: number) =>
    results.figure(name, value)?.median.toFixed(digits) ?? '–'
  return table(
    [
      `${title}: costs of dispatching`,
      'WAL bytes per message',
      'write transactions per 1,000',
      'CPU s of the client per 100 k',
      'its peak RSS (MB)',
    ],
    results.dispatches.map((name) => [
      name,
      shown(name, ({ walBytesPerItem }) => walBytesPerItem, 0),
      shown(name, ({ writeTransactionsPer1000 }) => writeTransactionsPer1000, 1),
      shown(name, ({ cpuSecondsPer100k }) => cpuSecondsPer100k, 2),
      shown(name, ({ peakRssMb }) => peakRssMb, 0),
    ]),
  )
}
