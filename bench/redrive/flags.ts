/** The command line of `npm run bench -- redrive`. */
import { parseArgs } from 'node:util'
import type { Dialect } from '../letters/sql.ts'

export const usage = `npm run bench -- redrive [options]
  --store STORE    postgres or sqlite; default: both
  --part PART      run, keyed, sources, live, cancel or rate; default: all
  --letters COUNT  how many are planned and sent in 'run'; default: 1,000,000 on PostgreSQL, 200,000 on SQLite
  --runs N         runs of 'run' and 'keyed', in turns with bare SQL; median and half of their range are told (default 1)
  --quick          small numbers: to see that everything runs
  --write          write the result to docs/benchmarks.md; a store that was not measured stays there as it is
  --help`

export const parts = ['run', 'keyed', 'sources', 'live', 'cancel', 'rate'] as const
export type Part = (typeof parts)[number]

export interface Sizes {
  /** How many letters there are, for each part but that of the rate, which knows by itself. */
  readonly letters: Readonly<Record<Exclude<Part, 'rate'>, number>>
  /** How long live traffic is measured without a redrive, and how long beside one. */
  readonly liveSeconds: number
  /** How often a redrive is cancelled. */
  readonly cancels: number
  /** A rate is measured over two windows of this length. */
  readonly windowSeconds: number
}

export interface Flags {
  readonly stores: readonly Dialect[]
  readonly parts: readonly Part[]
  readonly runs: number
  readonly sizes: Readonly<Record<Dialect, Sizes>>
  readonly write: boolean
}

const stores: readonly Dialect[] = ['postgres', 'sqlite']

const usual: Flags['sizes'] = {
  postgres: {
    letters: { run: 1_000_000, keyed: 200_000, sources: 20_000, live: 400_000, cancel: 100_000 },
    liveSeconds: 15,
    cancels: 5,
    windowSeconds: 10,
  },
  sqlite: {
    letters: { run: 200_000, keyed: 50_000, sources: 20_000, live: 100_000, cancel: 50_000 },
    liveSeconds: 15,
    cancels: 5,
    windowSeconds: 10,
  },
}

const quickSizes: Sizes = {
  letters: { run: 20_000, keyed: 5_000, sources: 5_000, live: 60_000, cancel: 20_000 },
  liveSeconds: 3,
  cancels: 2,
  windowSeconds: 3,
}

/** Throws an error that names the flag when one is wrong; null means that help was asked for. */
export function readFlags(args: readonly string[]): Flags | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      store: { type: 'string' },
      part: { type: 'string' },
      letters: { type: 'string' },
      runs: { type: 'string' },
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  if (values.write && values.part !== undefined)
    throw new Error(`--write: a store is written with all of its parts, leave out --part\n\n${usage}`)
  const store = oneOf('store', stores, values.store)
  const part = oneOf('part', parts, values.part)
  const run = countOf('letters', values.letters, 1_000)
  const sized = (sizes: Sizes): Sizes =>
    run === undefined ? sizes : { ...sizes, letters: { ...sizes.letters, run } }
  return {
    stores: store === undefined ? stores : [store],
    parts: part === undefined ? parts : [part],
    runs: countOf('runs', values.runs, 1) ?? 1,
    sizes: {
      postgres: sized(values.quick ? quickSizes : usual.postgres),
      sqlite: sized(values.quick ? quickSizes : usual.sqlite),
    },
    write: values.write,
  }
}

function oneOf<T extends string>(flag: string, allowed: readonly T[], given: string | undefined) {
  const found = allowed.find((each) => each === given)
  if (given !== undefined && found === undefined)
    throw new Error(`--${flag}: '${given}' is none of ${allowed.join(', ')}\n\n${usage}`)
  return found
}

function countOf(flag: string, given: string | undefined, least: number): number | undefined {
  if (given === undefined) return undefined
  const count = Number(given.replaceAll(/[_,]/g, ''))
  if (!Number.isInteger(count) || count < least)
    throw new Error(
      `--${flag}: '${given}' is no whole number from ${least.toLocaleString('en')} on\n\n${usage}`,
    )
  return count
}
