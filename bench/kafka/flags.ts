/** The command line of `npm run bench -- kafka`. */
import { parseArgs } from 'node:util'
import type { Dialect } from '../letters/sql.ts'

export const usage = `npm run bench -- kafka [options]
  --store STORE  postgres or sqlite; default: both
  --part PART    intake, preview or process; default: all
  --quick        small numbers: to see that everything runs
  --write        write the result to docs/benchmarks.md
  --help`

export const parts = ['intake', 'preview', 'process'] as const
export type Part = (typeof parts)[number]

export interface Sizes {
  /** Intake is the median of so many runs, in turns with the bare loop. */
  readonly runs: number
  /** Dead events that are taken in. */
  readonly events: number
  /** How many letters one service has when its queue is looked at. */
  readonly letters: readonly number[]
  /** Calls that are timed. */
  readonly samples: number
}

export interface Flags {
  readonly stores: readonly Dialect[]
  readonly parts: readonly Part[]
  readonly sizes: Sizes
  readonly write: boolean
}

const stores: readonly Dialect[] = ['postgres', 'sqlite']
const usual: Sizes = { runs: 3, events: 200_000, letters: [1_000, 1_000_000], samples: 500 }
const quick: Sizes = { runs: 1, events: 5_000, letters: [1_000, 5_000], samples: 50 }

/** Throws an error that names the flag when one is wrong; null means that help was asked for. */
export function readFlags(args: readonly string[]): Flags | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      store: { type: 'string' },
      part: { type: 'string' },
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const store = oneOf('store', stores, values.store)
  const part = oneOf('part', parts, values.part)
  return {
    stores: store === undefined ? stores : [store],
    parts: part === undefined ? parts : [part],
    sizes: values.quick ? quick : usual,
    write: values.write,
  }
}

function oneOf<T extends string>(flag: string, allowed: readonly T[], given: string | undefined) {
  const found = allowed.find((each) => each === given)
  if (given !== undefined && found === undefined)
    throw new Error(`--${flag}: '${given}' is none of ${allowed.join(', ')}\n\n${usage}`)
  return found
}
