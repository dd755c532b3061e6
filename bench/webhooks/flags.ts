/** The command line of `npm run bench -- webhooks`. */
import { parseArgs } from 'node:util'
import type { Dialect } from '../letters/sql.ts'

export const usage = `npm run bench -- webhooks [options]
  --store STORE  postgres or sqlite; default: both (--only is the same)
  --part PART    deliver, backlog, hang, dlq-status or bulk; default: all
  --consumers N  so many consumers in deliver; default: 1, then 10, then 50
  --large        23,000,000 dead jobs too in dlq-status (PostgreSQL only; about 60 GB of disk), and 1,000,000 in bulk
  --quick        small numbers: to see that everything runs
  --write        write the result to docs/benchmarks.md; parts that were not measured stay there as they are
  --help`

export const parts = ['deliver', 'backlog', 'hang', 'dlq-status', 'bulk'] as const
export type Part = (typeof parts)[number]

export interface Sizes {
  /** Every rate of deliveries is the median of so many runs. */
  readonly runs: number
  /** Of one run: messages times consumers. */
  readonly deliveries: number
  /** How many consumers a channel has. */
  readonly consumers: readonly number[]
  /** How long messages are sent at a steady rate for their way to be timed. */
  readonly steadySeconds: number
  /** Messages a second at that rate, and deliveries a second, whichever is less. */
  readonly steadyMessages: number
  readonly steadyDeliveries: number
  /** Deliveries that wait while broadcasts are timed. */
  readonly backlog: number
  readonly backlogSeconds: number
  /** Messages to the healthy consumer, and what waits for each one that hangs. */
  readonly hangMessages: number
  readonly stuck: number
  /** How many dead jobs there are, from few to many. */
  readonly dead: Readonly<Record<Dialect, readonly number[]>>
  /** Calls that are timed of everything that is read. */
  readonly samples: number
  /** Dead jobs that are purged, or requeued. */
  readonly bulk: number
  /** How long the other consumer is watched before that. */
  readonly calmSeconds: number
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
  deliveries: 20_000,
  consumers: [1, 10, 50],
  steadySeconds: 10,
  steadyMessages: 200,
  steadyDeliveries: 400,
  backlog: 100_000,
  backlogSeconds: 20,
  hangMessages: 20_000,
  stuck: 5_000,
  dead: { postgres: [1_000, 1_000_000], sqlite: [1_000, 1_000_000] },
  samples: 500,
  bulk: 200_000,
  calmSeconds: 10,
}

const quick: Sizes = {
  runs: 1,
  deliveries: 1_500,
  consumers: [1, 10, 50],
  steadySeconds: 1,
  steadyMessages: 100,
  steadyDeliveries: 200,
  backlog: 2_000,
  backlogSeconds: 1,
  hangMessages: 1_500,
  stuck: 300,
  dead: { postgres: [1_000, 5_000], sqlite: [1_000, 5_000] },
  samples: 40,
  bulk: 20_000,
  calmSeconds: 2,
}

/** Throws an error that names the flag when one is wrong; null means that help was asked for. */
export function readFlags(args: readonly string[]): Flags | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      store: { type: 'string' },
      only: { type: 'string' },
      part: { type: 'string' },
      consumers: { type: 'string' },
      large: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const store = oneOf('store', stores, values.store) ?? oneOf('only', stores, values.only)
  const part = oneOf('part', parts, values.part)
  const given = values.quick ? quick : usual
  const consumers = values.consumers === undefined ? given.consumers : [Number(values.consumers)]
  if (!consumers.every((count) => Number.isInteger(count) && count > 0))
    throw new Error(`--consumers: '${values.consumers}' is not a whole number above 0\n\n${usage}`)
  const sizes = { ...given, consumers }
  const { dead } = sizes
  return {
    stores: store === undefined ? stores : [store],
    parts: part === undefined ? parts : [part],
    sizes: values.large
      ? { ...sizes, dead: { ...dead, postgres: [...dead.postgres, 23_000_000] }, bulk: 1_000_000 }
      : sizes,
    write: values.write,
  }
}

function oneOf<T extends string>(flag: string, allowed: readonly T[], given: string | undefined) {
  const found = allowed.find((each) => each === given)
  if (given !== undefined && found === undefined)
    throw new Error(`--${flag}: '${given}' is none of ${allowed.join(', ')}\n\n${usage}`)
  return found
}
