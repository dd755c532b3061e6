/** The command line of `npm run bench -- outbox`. */
import { parseArgs } from 'node:util'
import type { Dialect } from '../letters/sql.ts'

export const usage = `npm run bench -- outbox [options]
  --only STORE   postgres or sqlite; default: both
  --part PART    writer, dispatch, latency, backlog or processed; default: all
  --large        10,000,000 processed rows instead of 1,000,000 (about 15 GB of disk)
  --quick        small numbers: to see that everything runs
  --write        write the result to docs/benchmarks.md
  --help`

export const parts = ['writer', 'dispatch', 'latency', 'backlog', 'processed'] as const
export type Part = (typeof parts)[number]

export interface Sizes {
  /** Every dispatch rate is the median of so many runs; systems take turns. */
  readonly runs: number
  /** Messages that lie there before they are dispatched. */
  readonly messages: number
  /** Claimed at once, by the dispatcher and by the bare loop; the default first. */
  readonly batchSizes: readonly number[]
  /** A backlog that the peer copes with: each of its fetches looks at all that waits. */
  readonly peerBacklog: number
  /** Sent before the clock starts, so that code is compiled and statements are prepared. */
  readonly warmUp: number
  /** A peer that is not through by then is measured by what it has done. */
  readonly limitSeconds: number
  /** Pairs of rounds of the writer, with and without, and transactions in one. */
  readonly rounds: number
  readonly transactions: number
  /** Messages whose way is timed, one after the other. */
  readonly timed: number
  /** Between two of them: from so long to three times as long. */
  readonly pauseMs: number
  readonly smallBacklog: number
  readonly largeBacklog: number
  readonly processedRows: number
  /** Calls that are timed of everything that is read. */
  readonly samples: number
}

export interface Flags {
  readonly stores: readonly Dialect[]
  readonly parts: readonly Part[]
  readonly sizes: Sizes
  readonly write: boolean
}

const stores: readonly Dialect[] = ['postgres', 'sqlite']

const usual: Sizes = {
  runs: 3,
  messages: 50_000,
  batchSizes: [100, 500],
  peerBacklog: 2_000,
  warmUp: 4_000,
  limitSeconds: 30,
  rounds: 9,
  transactions: 800,
  timed: 300,
  pauseMs: 40,
  smallBacklog: 10_000,
  largeBacklog: 1_000_000,
  processedRows: 1_000_000,
  samples: 200,
}

const quick: Sizes = {
  runs: 1,
  messages: 1_000,
  batchSizes: [100],
  peerBacklog: 1_000,
  warmUp: 300,
  limitSeconds: 1,
  rounds: 2,
  transactions: 40,
  timed: 15,
  pauseMs: 15,
  smallBacklog: 1_000,
  largeBacklog: 4_000,
  processedRows: 5_000,
  samples: 20,
}

/** Throws an error that names the flag when one is wrong; null means that help was asked for. */
export function readFlags(args: readonly string[]): Flags | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string' },
      part: { type: 'string' },
      large: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const only = oneOf('only', stores, values.only)
  const part = oneOf('part', parts, values.part)
  const sizes = values.quick ? quick : usual
  return {
    stores: only === undefined ? stores : [only],
    parts: part === undefined ? parts : [part],
    sizes: values.large ? { ...sizes, processedRows: 10_000_000 } : sizes,
    write: values.write,
  }
}

function oneOf<T extends string>(flag: string, allowed: readonly T[], given: string | undefined) {
  const found = allowed.find((each) => each === given)
  if (given !== undefined && found === undefined)
    throw new Error(`--${flag}: '${given}' is none of ${allowed.join(', ')}\n\n${usage}`)
  return found
}
