/** The command line of `npm run bench -- outbox`. */
import { readCommandLine } from '../command-line.ts'

const usage = `npm run bench -- outbox [options]
  --only STORE   postgres or sqlite; default: both
  --part PART    writer, dispatch, latency, backlog or processed; default: all
  --large        10,000,000 processed rows instead of 1,000,000 (about 15 GB of disk)
  --quick        small numbers: to see that everything runs
  --write        write the result to docs/benchmarks.md
  --help`

const parts = ['writer', 'dispatch', 'latency', 'backlog', 'processed'] as const

const usual = {
  /** Every dispatch rate is the median of so many runs; systems take turns. */
  runs: 3,
  /** Messages that lie there before they are dispatched. */
  messages: 50_000,
  /** Claimed at once, by the dispatcher and by the bare loop; the default first. */
  batchSizes: [100, 500],
  /** A backlog that the peer copes with: each of its fetches looks at all that waits. */
  peerBacklog: 2_000,
  /** Sent before the clock starts, so that code is compiled and statements are prepared. */
  warmUp: 4_000,
  /** A peer that is not through by then is measured by what it has done. */
  limitSeconds: 30,
  /** Pairs of rounds of the writer, with and without, and transactions in one. */
  rounds: 9,
  transactions: 800,
  /** Messages whose way is timed, one after the other. */
  timed: 300,
  /** Between two of them: from so long to three times as long. */
  pauseMs: 40,
  smallBacklog: 10_000,
  largeBacklog: 1_000_000,
  processedRows: 1_000_000,
  /** Calls that are timed of everything that is read. */
  samples: 200,
}

export type Sizes = Readonly<typeof usual>

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

export type Flags = NonNullable<ReturnType<typeof readFlags>>

export function readFlags(args: readonly string[]) {
  const line = readCommandLine(args, { usage, parts, switches: ['large'] })
  const sizes = line?.quick ? quick : usual
  return line && { ...line, sizes: line.isOn('large') ? { ...sizes, processedRows: 10_000_000 } : sizes }
}
