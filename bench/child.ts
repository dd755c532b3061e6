/** One workload on one system, in a process of its own, so that its memory and CPU are its own. */

import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { Meter } from './meter.ts'
import { systems } from './systems/index.ts'
import type { Task } from './task.ts'
import { runWorkload } from './workloads.ts'

// A signal ends the process by its 'exit' event, at which a system stops the server it has started.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const task: Task = JSON.parse(process.argv[2] ?? '{}')
const entry = systems[task.system]
const open = await entry.load()
const system = await open({
  postgresUrl: task.postgresUrl,
  redisPort: task.redisPort,
  folder: task.folder,
  aim: task.workload === 'latency' ? 'latency' : 'throughput',
})
const meter = await Meter.connect(entry.store === 'postgres' ? task.postgresUrl : null, system.processIds)
const idle = task.workload === 'soak' && task.sizes.idleTransaction ? await holdTransaction() : null
const measurement = await runWorkload(task.workload, system, meter, task.sizes)
await idle?.()
await meter.close()
await system.close()
process.send?.(measurement, () => process.exit(0))

/** A session that began a transaction and does nothing: what keeps a database from cleaning up. */
async function holdTransaction(): Promise<() => Promise<void>> {
  if (entry.store === 'postgres') {
    const session = new pg.Client({ connectionString: task.postgresUrl })
    await session.connect()
    await session.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await session.query('SELECT pg_current_xact_id()')
    return () => session.end()
  }
  const file = task.system === 'floor-sqlite' ? 'floor.db' : 'bartleby.db'
  if (entry.store !== 'sqlite') return async () => {}
  const session = new DatabaseSync(join(task.folder, file))
  session.exec('BEGIN; SELECT count(*) FROM sqlite_schema')
  return async () => session.close()
}
