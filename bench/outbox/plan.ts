/** Which runs a benchmark of dispatching consists of, and what each is called. */
import type { Dialect } from '../letters/sql.ts'
import type { Sizes } from './flags.ts'
import type { DispatchRun } from './task.ts'

/** In the order of their turns. */
export function dispatchRuns(store: Dialect, sizes: Sizes): DispatchRun[] {
  const run = (system: DispatchRun['system'], receiver: DispatchRun['receiver'], batchSize: number) => ({
    system,
    receiver,
    batchSize,
    backlog: sizes.messages,
  })
  const ours = sizes.batchSizes.flatMap((size) => [
    run('bare', 'function', size),
    run('dispatcher', 'function', size),
    run('bare', 'http', size),
    run('dispatcher', 'http', size),
  ])
  const peers = peerBacklogs(sizes).flatMap((backlog) => [
    { ...run('peer-default', 'function', 5), backlog },
    { ...run('peer-best', 'function', 500), backlog },
  ])
  return [...ours, run('posts', 'http', 1), ...(store === 'postgres' ? peers : [])]
}

/** With as many messages as everybody, and with as few as it likes. */
export const peerBacklogs = ({ messages, peerBacklog }: Sizes): readonly number[] => [
  ...new Set([messages, peerBacklog]),
]

const systems: Readonly<Record<DispatchRun['system'], string>> = {
  dispatcher: 'Bartleby',
  bare: 'bare SQL loop',
  posts: 'posts without a table',
  'peer-default': 'pg-transactional-outbox, defaults',
  'peer-best': 'pg-transactional-outbox, best settings',
}

/** The name of a run, the same in every table. */
export function nameOf({ system, receiver, batchSize, backlog }: DispatchRun): string {
  const by = system === 'posts' || system.startsWith('peer') ? '' : `, by ${batchSize}`
  const of = system.startsWith('peer') ? `, of ${backlog.toLocaleString('en')}` : ''
  return `${systems[system]}${receiver === 'http' && system !== 'posts' ? ', HTTP' : ''}${by}${of}`
}
