/** The command line of `npm run bench -- kafka`. */
import { readCommandLine } from '../command-line.ts'

const usage = `npm run bench -- kafka [options]
  --store STORE  postgres or sqlite; default: both
  --part PART    intake, preview or process; default: all
  --quick        small numbers: to see that everything runs
  --write        write the result to docs/benchmarks.md
  --help`

const parts = ['intake', 'preview', 'process'] as const

interface Sizes {
  /** Intake is the median of so many runs, in turns with the bare loop. */
  readonly runs: number
  /** Dead events that are taken in. */
  readonly events: number
  /** How many letters one service has when its queue is looked at. */
  readonly letters: readonly number[]
  /** Calls that are timed. */
  readonly samples: number
}

const usual: Sizes = { runs: 3, events: 200_000, letters: [1_000, 1_000_000], samples: 500 }
const quick: Sizes = { runs: 1, events: 5_000, letters: [1_000, 5_000], samples: 50 }

export type Flags = NonNullable<ReturnType<typeof readFlags>>

export function readFlags(args: readonly string[]) {
  const line = readCommandLine(args, { usage, parts })
  return line && { ...line, sizes: line.quick ? quick : usual }
}
