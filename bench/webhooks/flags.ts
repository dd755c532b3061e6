/** The command line of `npm run bench -- webhooks`. */
import { readCommandLine } from '../command-line.ts'

const usage = `npm run bench -- webhooks [options]
  --store STORE  postgres or sqlite; default: both (--only is the same)
  --part PART    deliver, backlog, hang, dlq-status or bulk; default: all
  --consumers N  so many consumers in deliver; default: 1, then 10, then 50
  --large        23,000,000 dead jobs too in dlq-status (PostgreSQL only; about 60 GB of disk), and 1,000,000 in bulk
  --quick        small numbers: to see that everything runs
  --write        write the result to docs/benchmarks.md; parts that were not measured stay there as they are
  --help`

const parts = ['deliver', 'backlog', 'hang', 'dlq-status', 'bulk'] as const
export type Part = (typeof parts)[number]

const usual = {
  /** Every rate of deliveries is the median of so many runs. */
  runs: 3,
  /** Of one run: messages times consumers. */
  deliveries: 20_000,
  /** How many consumers a channel has. */
  consumers: [1, 10, 50] as readonly number[],
  /** How long messages are sent at a steady rate for their way to be timed. */
  steadySeconds: 10,
  /** Messages a second at that rate, and deliveries a second, whichever is less. */
  steadyMessages: 200,
  steadyDeliveries: 400,
  /** Deliveries that wait while broadcasts are timed. */
  backlog: 100_000,
  backlogSeconds: 20,
  /** Messages to the healthy consumer, and what waits for each one that hangs. */
  hangMessages: 20_000,
  stuck: 5_000,
  /** How many dead jobs there are, from few to many. */
  dead: { postgres: [1_000, 1_000_000], sqlite: [1_000, 1_000_000] },
  /** Calls that are timed of everything that is read. */
  samples: 500,
  /** Dead jobs that are purged, or requeued. */
  bulk: 200_000,
  /** How long the other consumer is watched before that. */
  calmSeconds: 10,
}

export type Sizes = Readonly<typeof usual>

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

export type Flags = NonNullable<ReturnType<typeof readFlags>>

export function readFlags(args: readonly string[]) {
  const line = readCommandLine(args, { usage, parts, valued: ['consumers'], switches: ['large'] })
  if (line === null) return null
  const given = line.quick ? quick : usual
  const sizes = { ...given, consumers: line.countsOf('consumers', 1) ?? given.consumers }
  const { dead } = sizes
  return {
    ...line,
    sizes: line.isOn('large')
      ? { ...sizes, dead: { ...dead, postgres: [...dead.postgres, 23_000_000] }, bulk: 1_000_000 }
      : sizes,
  }
}
