/** One measurement in a process of its own, on an empty store. */

import { answerTask } from '../measuring.ts'
import { measureBacklog } from './backlog.ts'
import { measureDispatch } from './dispatch.ts'
import { measureLatency } from './latency.ts'
import { measureReads } from './reads.ts'
import type { Answers, Task } from './task.ts'
import { measureWriter } from './writer.ts'

await answerTask(measure)

function measure(task: Task): Promise<Answers[keyof Answers]> {
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
