/** The command line of `npm run bench -- letters`. */
import { readCommandLine } from '../command-line.ts'

const usage = `npm run bench -- letters [options]
  --only STORE   postgres or sqlite; default: both
  --letters LIST how many letters there are, from few to many, and nothing is expired at the end; default: 1000,1000000
  --runs N       runs of each on the same letters, median and half of their range are told; they share the calls (default 1)
  --large        23,000,000 letters too (PostgreSQL only; about 50 GB of disk)
  --quick        1,000 and 50,000 letters, fewer samples: to see that everything runs
  --write        write the result to docs/benchmarks.md
  --help`

export interface Sizes {
  readonly runs: number
  /** Calls that are timed of everything that is read, in one run. */
  readonly samples: number
  /** Items of one round of deaths, and of one of completions. */
  readonly stormItems: number
  readonly captureSeconds: number
  readonly calmSeconds: number
}

export type Flags = NonNullable<ReturnType<typeof readFlags>>

export function readFlags(args: readonly string[]) {
  const line = readCommandLine(args, { usage, valued: ['letters', 'runs'], switches: ['large'] })
  if (line === null) return null
  const [runs = 1] = line.countsOf('runs', 1) ?? []
  const many = line.quick ? 50_000 : 1_000_000
  const given = line.countsOf('letters', 1_000)
  const counts = given ?? [1_000, many]
  const sizes: Sizes = line.quick
    ? { runs, samples: Math.ceil(60 / runs), stormItems: 6_000, captureSeconds: 1, calmSeconds: 1 }
    : {
        runs,
        samples: Math.ceil(500 / runs),
        stormItems: 60_000,
        captureSeconds: Math.ceil(10 / runs),
        calmSeconds: 10,
      }
  return {
    ...line,
    sizes,
    /** How many letters there are, from few to many. */
    counts: { postgres: line.isOn('large') ? [...counts, 23_000_000] : counts, sqlite: counts },
    /** All pending letters are expired at this size, if at any. */
    expireAt: given === undefined ? many : null,
  }
}
