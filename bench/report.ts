/** The tables that a benchmark prints: figures, then ratios with wins and losses alike, then what was measured on. */
import type { Figure, Results } from './results.ts'
import { type SystemName, systems } from './systems/index.ts'
import { endOf, table } from './tables.ts'
import type { Measurement, WorkloadName } from './task.ts'

interface Column {
  readonly title: string
  readonly workload: WorkloadName
  readonly betterIs: 'higher' | 'lower'
  value(measurement: Measurement): number | null | undefined
  show(median: number): string
}

const columns: readonly Column[] = [
  rate('enqueue by 1,000 (/s)', 'enqueue'),
  rate('enqueue single, 16 callers (/s)', 'single'),
  rate('drain preloaded (/s)', 'drain'),
  { ...rate('soak, at first (/s)', 'soak'), value: (m) => m.soak?.firstPerSecond },
  { ...rate('soak, at last (/s)', 'soak'), value: (m) => m.soak?.lastPerSecond },
  { ...millis('latency p50 (ms)'), value: (m) => m.latency?.p50Ms },
  { ...millis('latency p99 (ms)'), value: (m) => m.latency?.p99Ms },
  rate('dead-letter storm (/s)', 'storm'),
]

/** Beside nobody else's: who is slow from the beginning stays so. */
const steadiness: Column = {
  ...rate('soak, last : first', 'soak'),
  value: (m) => (m.soak === undefined ? null : m.soak.lastPerSecond / m.soak.firstPerSecond),
  show: (ratio) => `${(100 * ratio).toFixed(0)}%`,
}

const costs: readonly Column[] = [
  cost('WAL B/item, enqueue', 'enqueue', (m) => m.walBytesPerItem, 0),
  cost('WAL B/item, drain', 'drain', (m) => m.walBytesPerItem, 0),
  cost('WAL B/item, storm', 'storm', (m) => m.walBytesPerItem, 0),
  cost('write transactions per 1,000, single', 'single', (m) => m.writeTransactionsPer1000, 1),
  cost('write transactions per 1,000, drain', 'drain', (m) => m.writeTransactionsPer1000, 1),
  cost('CPU s per 100 k, enqueue', 'enqueue', (m) => m.cpuSecondsPer100k, 2),
  cost('CPU s per 100 k, drain', 'drain', (m) => m.cpuSecondsPer100k, 2),
]

function rate(title: string, workload: WorkloadName): Column {
  return { title, workload, betterIs: 'higher', value: (m) => m.perSecond, show: thousands }
}

function millis(title: string): Column {
  return { title, workload: 'latency', betterIs: 'lower', value: () => null, show: (ms) => ms.toFixed(2) }
}

function cost(title: string, workload: WorkloadName, value: Column['value'], digits: number): Column {
  return { title, workload, betterIs: 'lower', value, show: (number) => number.toFixed(digits) }
}

function thousands(perSecond: number): string {
  return perSecond >= 100_000 ? `${(perSecond / 1000).toFixed(0)} k` : `${(perSecond / 1000).toFixed(1)} k`
}

/** The whole result as markdown. */
export function report(
  results: Results,
  names: readonly SystemName[],
  facts: readonly [string, string][],
  notes: readonly string[],
): string {
  const sections = [
    figuresTable(results, names, [...columns, steadiness]),
    ratiosTable(results, names),
    costsTable(results, names),
    ...endOf(facts, notes, results.failures),
  ]
  return sections.filter((section) => section !== '').join('\n\n')
}

function figuresTable(results: Results, names: readonly SystemName[], shown: readonly Column[]): string {
  const used = shown.filter((column) => names.some((name) => ran(results, name, column)))
  if (used.length === 0) return ''
  return table(
    ['system', ...used.map((column) => column.title)],
    names.map((name) => [systems[name].title, ...used.map((column) => cell(results, name, column))]),
  )
}

function costsTable(results: Results, names: readonly SystemName[]): string {
  const used = costs.filter((column) => names.some((name) => ran(results, name, column)))
  const megabytes = (number: number | null) => (number === null ? '–' : number.toFixed(0))
  return table(
    ['cost', ...used.map((column) => column.title), 'peak RSS of the client (MB)', 'of the HTTP server (MB)'],
    names.map((name) => [
      systems[name].title,
      ...used.map((column) => cell(results, name, column)),
      megabytes(results.peak(name, (m) => m.peakRssMb)),
      megabytes(results.peak(name, (m) => m.serverPeakRssMb)),
    ]),
  )
}

/** Ours against the fastest peer of any store and against bare SQL on the same store. */
function ratiosTable(results: Results, names: readonly SystemName[]): string {
  const peers = names.filter((name) => systems[name].role === 'peer')
  const rows = names
    .filter((name) => systems[name].role === 'ours')
    .flatMap((name) => {
      const floor = names.filter(
        (other) => systems[other].role === 'floor' && systems[other].store === systems[name].store,
      )
      return [
        [
          `${systems[name].title} : fastest peer`,
          ...columns.map((column) => ratio(results, name, peers, column)),
        ],
        [
          `${systems[name].title} : bare SQL`,
          ...columns.map((column) => ratio(results, name, floor, column)),
        ],
      ]
    })
  return rows.length === 0 ? '' : table(['ratio', ...columns.map((column) => column.title)], rows)
}

function ratio(results: Results, name: SystemName, others: readonly SystemName[], column: Column): string {
  const own = figure(results, name, column)
  const figures = others
    .map((other) => ({ other, figure: figure(results, other, column) }))
    .filter((rival): rival is { other: SystemName; figure: Figure } => rival.figure !== null)
    .sort((a, b) => goodness(b.figure, column) - goodness(a.figure, column))
  const best = figures[0]
  if (own === null || best === undefined) return '–'
  const factor = goodness(own, column) / goodness(best.figure, column)
  const against = systems[best.other].role === 'peer' ? ` (${best.other})` : ''
  return `${factor.toFixed(2)}x${against}${factor < 1 && against !== '' ? ' **loss**' : ''}`
}

function goodness(figure: Figure, column: Column): number {
  return column.betterIs === 'higher' ? figure.median : 1 / figure.median
}

function figure(results: Results, name: SystemName, column: Column): Figure | null {
  return results.figure(name, column.workload, column.value)
}

function ran(results: Results, name: SystemName, column: Column): boolean {
  return figure(results, name, column) !== null || results.hasFailed(name, column.workload)
}

function cell(results: Results, name: SystemName, column: Column): string {
  if (results.hasFailed(name, column.workload)) return '**failed**'
  const shown = figure(results, name, column)
  if (shown === null) return '–'
  return `${column.show(shown.median)} ±${(shown.spread * 50).toFixed(0)}%`
}
