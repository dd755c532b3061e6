/** The command line of `npm run bench -- letters`. */
import { parseArgs } from 'node:util'
import type { Dialect } from './sql.ts'

export const usage = `npm run bench -- letters [options]
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

export interface Flags {
  readonly stores: readonly Dialect[]
  /** How many letters there are, from few to many. */
  readonly counts: Readonly<Record<Dialect, readonly number[]>>
  /** All pending letters are expired at this size, if at any. */
  readonly expireAt: number | null
  readonly sizes: Sizes
  readonly write: boolean
}

const stores: readonly Dialect[] = ['postgres', 'sqlite']

/** Throws an error that names the flag when one is wrong; null means that help was asked for. */
export function readFlags(args: readonly string[]): Flags | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string' },
      letters: { type: 'string' },
      runs: { type: 'string', default: '1' },
      large: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const only = stores.find((store) => store === values.only)
  if (values.only !== undefined && only === undefined) {
    throw new Error(`--only: '${values.only}' is neither postgres nor sqlite\n\n${usage}`)
  }
  const runs = Number(values.runs)
  if (!Number.isInteger(runs) || runs < 1)
    throw new Error(`--runs: '${values.runs}' is not a whole number above 0\n\n${usage}`)
  const many = values.quick ? 50_000 : 1_000_000
  const counts = values.letters?.split(',').map(countOf) ?? [1_000, many]
  return {
    stores: only === undefined ? stores : [only],
    counts: { postgres: values.large ? [...counts, 23_000_000] : counts, sqlite: counts },
    expireAt: values.letters === undefined ? many : null,
    sizes: values.quick
      ? { runs, samples: Math.ceil(60 / runs), stormItems: 6_000, captureSeconds: 1, calmSeconds: 1 }
      : {
          runs,
          samples: Math.ceil(500 / runs),
          stormItems: 60_000,
          captureSeconds: Math.ceil(10 / runs),
          calmSeconds: 10,
        },
    write: values.write,
  }
}

function countOf(text: string): number {
  const count = Number(text.replaceAll('_', ''))
  if (!Number.isInteger(count) || count < 1_000)
    throw new Error(`--letters: '${text}' is no whole number from 1,000 on\n\n${usage}`)
  return count
}
