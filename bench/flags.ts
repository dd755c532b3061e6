/** The command line of the benchmark. */
import { parseArgs } from 'node:util'
import { serverUsage } from './servers/postgres.ts'
import { isSystemName, type SystemName, systemNames } from './systems/index.ts'
import { type Sizes, type WorkloadName, workloadNames } from './task.ts'

export const usage = `npm run bench -- [options]
npm run bench -- PART [options]      letters, outbox, webhooks, kafka, redrive or console; see PART --help
  --only LIST          systems and workloads, comma-separated; default: all
                       systems:   ${systemNames.join(', ')}
                       workloads: ${workloadNames.join(', ')}
  --runs N             runs of each, median is reported (default 3)
  --items N            items of enqueue, drain and storm (default 60000)
  --seconds N          length of the soak (default 60)
  --idle-transaction   hold a transaction open in another session during the soak
  --quick              15,000 items, soak 9 s, shorter everything
  --write              write the result to docs/benchmarks.md
  --help
All benchmarks also take:
${serverUsage}`

export interface Flags {
  readonly systems: readonly SystemName[]
  readonly workloads: readonly WorkloadName[]
  readonly runs: number
  readonly sizes: Sizes
  readonly write: boolean
}

/** Throws an error that names the flag when one is wrong; null means that help was asked for. */
export function readFlags(args: readonly string[]): Flags | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', multiple: true, default: [] },
      runs: { type: 'string', default: '3' },
      items: { type: 'string' },
      seconds: { type: 'string' },
      'idle-transaction': { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const { systems, workloads } = selection(values.only.flatMap((list) => list.split(',')))
  return {
    systems,
    workloads,
    runs: whole('--runs', values.runs),
    write: values.write,
    sizes: {
      items: whole('--items', values.items ?? (values.quick ? '15000' : '60000')),
      soakSeconds: whole('--seconds', values.seconds ?? (values.quick ? '9' : '60')),
      singleSeconds: values.quick ? 2 : 5,
      latencySeconds: values.quick ? 5 : 20,
      idleTransaction: values['idle-transaction'],
    },
  }
}

function selection(names: readonly string[]): Pick<Flags, 'systems' | 'workloads'> {
  const systems: SystemName[] = []
  const workloads: WorkloadName[] = []
  for (const name of names) {
    const workload = workloadNames.find((known) => known === name)
    if (workload !== undefined) workloads.push(workload)
    else if (isSystemName(name)) systems.push(name)
    else throw new Error(`--only: '${name}' is neither a system nor a workload\n\n${usage}`)
  }
  return {
    systems: systems.length > 0 ? systems : systemNames,
    workloads: workloads.length > 0 ? workloads : workloadNames,
  }
}

function whole(flag: string, text: string): number {
  const number = Number(text)
  if (!Number.isInteger(number) || number < 1)
    throw new Error(`${flag}: '${text}' is not a whole number above 0`)
  return number
}
