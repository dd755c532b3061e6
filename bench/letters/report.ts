/** The table of one store: a line per figure, a column per size, how it grew, and the goal with whether it is met. */

import { type Figure, MOST_GROWTH } from '../figures.ts'
import { storeTitles } from '../grounds.ts'
import { table } from '../tables.ts'
import type { Dialect } from './sql.ts'
import type { Outcome } from './task.ts'

interface Goal {
  readonly text: string
  /** At the largest size at which the figure was taken; `growth` is its value there over that at 1,000 letters. */
  met(value: number, growth: number): boolean
}

const fastEnough = (limitMs: number): Goal => ({
  text: `≤ ${limitMs} ms, ≤ 2x`,
  met: (value, growth) => value <= limitMs && growth <= MOST_GROWTH,
})
const flat: Goal = { text: '≤ 2x', met: (_, growth) => growth <= MOST_GROWTH }

const atLeast = (least: number, unit: '/s' | '%'): Goal => ({
  text: `≥ ${least.toLocaleString('en')}${unit}`,
  met: (value) => value >= least,
})

const goalsOf = (store: Dialect): Readonly<Record<string, Goal>> => ({
  'counts, p50': flat,
  'counts, p99': fastEnough(5),
  'first page, p50': flat,
  'first page, p95': fastEnough(10),
  'first page over HTTP, p95': fastEnough(50),
  'deep page (100th on), p50': flat,
  'captures over HTTP, 16 callers': atLeast(store === 'postgres' ? 4_000 : 6_000, '/s'),
  'captures over HTTP in batches, 4 callers': atLeast(20_000, '/s'),
  'deaths : completions': atLeast(50, '%'),
  'peak RSS of the server': { text: '< 256 MB', met: (value) => value < 256 },
  'a writer during bulk expire, worst': { text: '≤ 100 ms', met: (value) => value <= 100 },
})

export interface SizeOutcome {
  readonly letters: number
  /** null when the run failed. */
  readonly outcome: Outcome | null
}

/** One store's outcomes, from few letters to many, as markdown. */
export function storeTable(store: Dialect, sizes: readonly SizeOutcome[]): string {
  const names = [...new Set(sizes.flatMap(({ outcome }) => outcome?.figures.map(({ name }) => name) ?? []))]
  const goals = goalsOf(store)
  const head = [
    storeTitles[store],
    ...sizes.map(({ letters }) => `${letters.toLocaleString('en')} letters`),
    'growth',
    'goal',
  ]
  const rows = names.map((name) => {
    const figures = sizes.map(({ outcome }) => outcome?.figures.find((figure) => figure.name === name))
    return [name, ...figures.map(shown), ...judged(goals[name], figures)]
  })
  const peak = sizes.map(({ outcome }) => (outcome === null ? '–' : `${outcome.peakRssMb.toFixed(0)} MB`))
  const books = sizes.map(({ outcome }) =>
    outcome === null ? '**failed**' : `${outcome.reconciled.toLocaleString('en')} =`,
  )
  return table(head, [
    ...rows,
    ['peak RSS of the process', ...peak, '', ''],
    ['counts against COUNT at the end', ...books, '', ''],
  ])
}

/** The plans of what is not flat, a block for each call at each size. */
export const planTexts = (sizes: readonly SizeOutcome[]): string[] =>
  sizes.flatMap(({ letters, outcome }) =>
    (outcome?.plans ?? []).map(
      ({ name, texts }) =>
        `Plans of "${name}" with ${letters.toLocaleString('en')} letters:\n\n\`\`\`\n${texts.join('\n\n')}\n\`\`\``,
    ),
  )

function judged(
  goal: Goal | undefined,
  figures: readonly (Figure | undefined)[],
): [growth: string, goal: string] {
  const first = figures[0]
  const last = figures.findLast((figure) => figure !== undefined)
  if (last === undefined) return ['', '']
  const growth = first === undefined || first === last ? Number.NaN : last.value / first.value
  const compared = last.unit === 'ms' && !Number.isNaN(growth) ? `${growth.toFixed(2)}x` : ''
  if (goal === undefined) return [compared, '']
  const known = Number.isNaN(growth) ? 0 : growth
  return [compared, `${goal.text} ${goal.met(last.value, known) ? 'met' : '**missed**'}`]
}

function shown(figure: Figure | undefined): string {
  if (figure === undefined) return '–'
  const { spread } = figure
  return textOf(figure) + (spread === undefined ? '' : ` ±${(100 * spread).toFixed(0)}%`)
}

function textOf({ value, unit }: Figure): string {
  switch (unit) {
    case 'ms':
      return `${value.toFixed(value < 10 ? 2 : 1)} ms`
    case '%':
      return `${value.toFixed(0)}%`
    case 'MB':
      return `${value.toFixed(0)} MB`
    case 's':
      return `${value.toFixed(1)} s`
    case '/s':
      return `${Math.round(value).toLocaleString('en')}/s`
    case 'letters':
      return value.toLocaleString('en')
  }
}
