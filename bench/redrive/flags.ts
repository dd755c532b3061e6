/** The command line of `npm run bench -- redrive`. */
import { readCommandLine } from '../command-line.ts'
import type { Dialect } from '../letters/sql.ts'

const usage = `npm run bench -- redrive [options]
  --store STORE    postgres or sqlite; default: both
  --part PART      run, keyed, sources, live, cancel or rate; default: all
  --letters COUNT  how many are planned and sent in 'run'; default: 1,000,000 on PostgreSQL, 200,000 on SQLite
  --runs N         runs of 'run' and 'keyed', in turns with bare SQL; median and half of their range are told (default 1)
  --quick          small numbers: to see that everything runs
  --write          write the result to docs/benchmarks.md; a store that was not measured stays there as it is
  --help`

const parts = ['run', 'keyed', 'sources', 'live', 'cancel', 'rate'] as const
export type Part = (typeof parts)[number]

interface Sizes {
  /** How many letters there are, for each part but that of the rate, which knows by itself. */
  readonly letters: Readonly<Record<Exclude<Part, 'rate'>, number>>
  /** How long live traffic is measured without a redrive, and how long beside one. */
  readonly liveSeconds: number
  /** How often a redrive is cancelled. */
  readonly cancels: number
  /** A rate is measured over two windows of this length. */
  readonly windowSeconds: number
}

const usual: Readonly<Record<Dialect, Sizes>> = {
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

export type Flags = NonNullable<ReturnType<typeof readFlags>>

export function readFlags(args: readonly string[]) {
  const line = readCommandLine(args, { usage, parts, valued: ['letters', 'runs'] })
  if (line === null) return null
  if (line.write && line.parts !== parts)
    throw new Error(`--write: a store is written with all of its parts, leave out --part\n\n${usage}`)
  const [run] = line.countsOf('letters', 1_000) ?? []
  const [runs = 1] = line.countsOf('runs', 1) ?? []
  const sized = (sizes: Sizes): Sizes =>
    run === undefined ? sizes : { ...sizes, letters: { ...sizes.letters, run } }
  return {
    ...line,
    runs,
    sizes: {
      postgres: sized(line.quick ? quickSizes : usual.postgres),
      sqlite: sized(line.quick ? quickSizes : usual.sqlite),
    },
  }
}
