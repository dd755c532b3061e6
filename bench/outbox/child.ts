/** One measurement in a process of its own, on an empty store. */
import { measureBacklog } from './backlog.ts'
import { measureDispatch } from './dispatch.ts'
import { measureLatency } from './latency.ts'
import { measureReads } from './reads.ts'
import type { Answers, Task } from './task.ts'
import { measureWriter } from './writer.ts'

// A signal ends the process by its 'exit' event, at which what it has started is stopped.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const task: Task = JSON.parse(process.argv[2] ?? '{}')
const answer = await measure()
process.send?.(answer, () => process.exit(0))

function measure(): Promise<Answers[keyof Answers]> {
  const { store, sizes } = task
  switch (task.part) {
    case 'writer':
      return measureWriter(store, sizes)
    case 'dispatch':
      return measureDispatch(store, task.order, sizes)
    case 'latency':
      return measureLatency(store, sizes)
    case 'backlog':
      return measureBacklog(store, task.order.backlog, sizes)
    case 'processed':
      return measureReads(store, task.order.rows, sizes)
  }
}
