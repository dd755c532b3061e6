/** One measurement in a process of its own, on an empty store. */
import { measureBacklog } from './backlog.ts'
import { measureBulk } from './bulk.ts'
import { measureDeliver } from './deliver.ts'
import { measureDlqStatus } from './dlq-status.ts'
import { measureHang } from './hang.ts'
import type { Answers, Task } from './task.ts'

// A signal ends the process by its 'exit' event, at which what it has started is stopped.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const task: Task = JSON.parse(process.argv[2] ?? '{}')
const answer = await measure()
process.send?.(answer, () => process.exit(0))

function measure(): Promise<Answers[keyof Answers]> {
  const { store, sizes } = task
  switch (task.part) {
    case 'deliver':
      return measureDeliver(store, task.order.consumers, sizes)
    case 'backlog':
      return measureBacklog(store, sizes)
    case 'hang':
      return measureHang(store, task.order.hanging, sizes)
    case 'dlq-status':
      return measureDlqStatus(store, task.order.dead, sizes)
    case 'bulk':
      return measureBulk(store, task.order.act, sizes)
  }
}
